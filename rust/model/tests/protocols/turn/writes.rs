//! Steps of writers. Each returns `None` if it cannot happen now.

use super::state::{TurningTenant, WriterStep};
use super::{Flaw, Turn};

impl Turn {
    /// `SealedStore::renew_keys`, at any time or never.
    pub(super) fn read_keys(state: &mut TurningTenant, writer: usize) -> Option<()> {
        let own = &mut state.writers[writer];
        (own.step == WriterStep::Idle && own.file != state.file).then_some(())?;
        own.file = state.file;
        Some(())
    }

    /// `Writer::append`: seals the batch, and sends it until its outcome is known.
    pub(super) fn write(&self, state: &mut TurningTenant, writer: usize) -> Option<()> {
        let own = state.writers[writer];
        let step = match own.step {
            WriterStep::Idle => WriterStep::Sealed(own.file.sealing),
            WriterStep::Sealed(key) if self.append(state, writer, key) => WriterStep::Acknowledged,
            WriterStep::Sealed(key) => {
                state.has_refused = true;
                WriterStep::Refused(key)
            }
            WriterStep::Refused(key) => {
                let is_stored = match self.flaw {
                    Some(Flaw::AgainUnseen) => false,
                    Some(Flaw::LostIsStored) => true,
                    _ => state.stored[writer] & 1 << key != 0,
                };
                let is_acknowledged = own.is_in_doubt && is_stored;
                if is_acknowledged { WriterStep::Acknowledged } else { WriterStep::Absent }
            }
            WriterStep::Absent => {
                state.writers[writer].file = state.file;
                state.writers[writer].is_in_doubt = false;
                WriterStep::Sealed(state.file.sealing)
            }
            WriterStep::Acknowledged => return None,
        };
        state.writers[writer].step = step;
        Some(())
    }

    /// The append's statement. Returns false if the database refuses the key. An attempt that is
    /// stored already is found by its id.
    fn append(&self, state: &mut TurningTenant, batch: usize, key: u8) -> bool {
        let is_open = match self.flaw {
            Some(Flaw::AppendUnasked) => true,
            Some(Flaw::AppendBySlot) => (0..8).any(|other| {
                let is_open = state.open & 1 << other != 0;
                is_open && other % 2 == key % 2
            }),
            _ => state.open & 1 << key != 0,
        };
        if is_open && state.stored[batch] & 1 << key == 0 {
            state.log[batch] |= 1 << key;
            state.stored[batch] |= 1 << key;
        }
        is_open
    }

    /// The connection breaks behind the statement, which may take effect later or never.
    pub(super) fn lose_answer(state: &mut TurningTenant, writer: usize) -> Option<()> {
        let own = &mut state.writers[writer];
        let WriterStep::Sealed(key) = own.step else { return None };
        state.losses = state.losses.checked_sub(1)?;
        own.is_in_doubt = true;
        state.late = Some((writer, key));
        Some(())
    }

    pub(super) fn append_late(&self, state: &mut TurningTenant) -> Option<()> {
        let (batch, key) = state.late.take()?;
        self.append(state, batch, key);
        Some(())
    }
}
