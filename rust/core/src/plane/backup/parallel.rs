//! Runs work on many segments in a few threads: while one thread waits for the disk, others hash.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::model::error::Result;

const THREADS: usize = 4;

/// Returns the results of `work` on each item, in the order of the items, or the first error. After
/// an error no further item is begun.
pub(super) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let run = &|| {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(done) };
            match work(item) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    next.store(items.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut done = Vec::with_capacity(items.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS.min(items.len())).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| {
            let results: Result<Vec<_>> =
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done.extend(results?);
            Ok(())
        })
    })?;
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
