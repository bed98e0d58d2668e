//! Steps of writers. Each returns `None` if it cannot happen now.

use super::state::{TurningTenant, Writer};
use super::{Flaw, Turn};

impl Turn {
    /// `SealedStore::renew_keys`, at any time or never. After a refusal it comes before the next
    /// seal.
    pub(super) fn read_keys(state: &mut TurningTenant, writer: usize) -> Option<()> {
        let next = Writer::Idle(state.file.sealing);
        let own = &mut state.writers[writer];
        (matches!(own, Writer::Idle(_) | Writer::Absent) && *own != next).then_some(())?;
        *own = next;
        Some(())
    }

    /// `ClusterStore::append_page`, before the batch that needs the names. A page that is refused
    /// changes nothing, and a page whose answer was lost is the page of a writer that slept.
    pub(super) fn append_page(&self, state: &mut TurningTenant, writer: usize) -> Option<()> {
        let Writer::Idle(key) = state.writers[writer] else { return None };
        let is_open = self.flaw == Some(Flaw::PageUnasked) || state.open & 1 << key != 0;
        (is_open && state.page.is_none()).then_some(())?;
        state.page = Some(key);
        Some(())
    }

    /// Seals the batch, and then `ClusterStore::commit` sends it until its outcome is known. The
    /// process seals no batch again by itself: after `X-Write-Outcome: none` its client does.
    pub(super) fn write(&self, state: &mut TurningTenant, writer: usize) -> Option<()> {
        let own = state.writers[writer];
        let step = match own {
            Writer::Idle(key) => Writer::Sealed { key, is_in_doubt: false },
            Writer::Sealed { key, .. } if self.append(state, writer, key) => Writer::Acknowledged,
            Writer::Sealed { is_in_doubt, .. } => {
                state.has_refused = true;
                self.refused(is_in_doubt)
            }
            Writer::Absent | Writer::Acknowledged | Writer::Unknown => return None,
        };
        state.writers[writer] = step;
        Some(())
    }

    /// Answers the client after the database has refused an attempt. An earlier attempt may be
    /// stored: it came before the close.
    fn refused(&self, is_in_doubt: bool) -> Writer {
        match self.flaw {
            _ if !is_in_doubt => Writer::Absent,
            Some(Flaw::RefusedIsAbsent) => Writer::Absent,
            Some(Flaw::LostIsStored) => Writer::Acknowledged,
            _ => Writer::Unknown,
        }
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
        let Writer::Sealed { key, is_in_doubt } = &mut state.writers[writer] else { return None };
        state.losses = state.losses.checked_sub(1)?;
        *is_in_doubt = true;
        state.late = Some((writer, *key));
        Some(())
    }

    pub(super) fn append_late(&self, state: &mut TurningTenant) -> Option<()> {
        let (batch, key) = state.late.take()?;
        self.append(state, batch, key);
        Some(())
    }
}
