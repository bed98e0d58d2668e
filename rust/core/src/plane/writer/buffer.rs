//! Batches that are acknowledged before they are durable: asynchronous mode.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::error::{Error, Result};
use crate::storage::store::StoreCounts;

/// Greatest number of batches that wait, even small ones: bounds the transaction that stores them.
const BLOCKS_MAX: usize = 65_536;

/// A batch that waits. It is sealed when it is stored, under the key of that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingBatch {
    /// The encoded block. Empty if the batch has no accepted record.
    pub(super) block: Vec<u8>,
    pub(super) counts: StoreCounts,
}

impl WaitingBatch {
    /// Bytes that the batch takes of the bound. A batch without an accepted record takes one byte:
    /// its counts wait for the flush, too.
    fn bytes(&self) -> usize {
        self.block.len().max(1)
    }
}

/// A bounded queue in write order.
#[derive(Default)]
pub(super) struct WriteQueue {
    state: Mutex<WriteQueueState>,
    /// Lock to store blocks, so that they are stored in order.
    flushing: Mutex<()>,
}

#[derive(Default)]
struct WriteQueueState {
    waiting: Vec<WaitingBatch>,
    /// Bytes of the batches that wait or are being stored.
    bytes: usize,
    is_closed: bool,
}

impl WriteQueue {
    fn state(&self) -> MutexGuard<'_, WriteQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Accepts no more batches. The next flush stores the batches that wait.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
    }

    /// Takes `batch` unless more than `bytes_max` bytes would wait. A larger batch passes if no
    /// other batch waits.
    pub(super) fn push(&self, batch: WaitingBatch, bytes_max: usize) -> bool {
        let mut state = self.state();
        let bytes = state.bytes + batch.bytes();
        if state.is_closed
            || state.bytes > 0 && bytes > bytes_max
            || state.waiting.len() >= BLOCKS_MAX
        {
            return false;
        }
        state.bytes = bytes;
        state.waiting.push(batch);
        true
    }

    /// Hands all waiting batches to `store`. If the disk is full or the store is away, the batches
    /// keep waiting.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`], [`Error::Unavailable`], or [`Error::Lost`] for any other error
    /// of `store`.
    pub(super) fn flush(&self, store: impl FnOnce(&[WaitingBatch]) -> Result<()>) -> Result<()> {
        let _order = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = std::mem::take(&mut self.state().waiting);
        if batches.is_empty() {
            return Ok(());
        }
        let bytes: usize = batches.iter().map(WaitingBatch::bytes).sum();
        let rows = batches.iter().map(|batch| batch.counts.rows).sum();
        let result = store(&batches);
        let mut state = self.state();
        match result {
            Err(Error::DiskFull | Error::Unavailable { .. }) => {
                state.waiting.splice(..0, batches);
                return result;
            }
            Ok(()) | Err(_) => state.bytes -= bytes,
        }
        result.map_err(|cause| Error::Lost { rows, cause: Box::new(cause) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(content: u8) -> WaitingBatch {
        let counts = StoreCounts { rows: 1, ..StoreCounts::default() };
        WaitingBatch { block: vec![content; 100], counts }
    }

    fn contents(batches: &[WaitingBatch]) -> Vec<u8> {
        batches.iter().map(|batch| batch.block[0]).collect()
    }

    #[test]
    fn what_waits_is_stored_in_order_and_leaves_room() {
        let buffer = WriteQueue::default();
        assert!(buffer.push(block(1), 250));
        assert!(buffer.push(block(2), 250));
        assert!(!buffer.push(block(3), 250), "F10: bounded in bytes");
        let mut stored = Vec::new();
        buffer
            .flush(|blocks| {
                stored = contents(blocks);
                Ok(())
            })
            .unwrap();
        assert_eq!(stored, [1, 2]);
        assert_eq!(buffer.bytes(), 0);
        assert!(buffer.push(block(3), 250));
    }

    #[test]
    fn a_batch_larger_than_the_buffer_passes_alone() {
        let buffer = WriteQueue::default();
        assert!(buffer.push(block(1), 10));
        assert!(!buffer.push(block(2), 10));
    }

    #[test]
    fn what_is_being_stored_counts_until_it_is() {
        let buffer = WriteQueue::default();
        assert!(buffer.push(block(1), 150));
        buffer
            .flush(|_| {
                assert!(!buffer.push(block(2), 150));
                Ok(())
            })
            .unwrap();
        assert!(buffer.push(block(2), 150));
    }

    #[test]
    fn after_a_full_disk_everything_is_tried_again_in_order() {
        let buffer = WriteQueue::default();
        assert!(buffer.push(block(1), 1_000));
        let full = buffer.flush(|_| {
            assert!(buffer.push(block(2), 1_000));
            Err(Error::DiskFull)
        });
        assert!(matches!(full, Err(Error::DiskFull)));
        assert_eq!(buffer.bytes(), 200);
        let mut stored = Vec::new();
        buffer
            .flush(|blocks| {
                stored = contents(blocks);
                Ok(())
            })
            .unwrap();
        assert_eq!(stored, [1, 2]);
    }

    #[test]
    fn a_store_that_fails_loses_what_waited_and_says_how_much() {
        let buffer = WriteQueue::default();
        assert!(buffer.push(block(1), 1_000));
        assert!(buffer.push(block(2), 1_000));
        let lost = buffer.flush(|_| Err(Error::Poisoned));
        assert!(matches!(lost, Err(Error::Lost { rows: 2, .. })), "{lost:?}");
        assert_eq!(buffer.bytes(), 0);
        buffer.flush(|_| panic!("nothing is left to store")).unwrap();
    }
}
