//! Cost of a body: the memory while it is written, the stored bytes, and the memory of a first
//! look.

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, AdaptedBody, Plane, WriteError};
use fleetcast_core::wire::{CsvColumns, Format, NameRules, Protocol};

use crate::allocations::peak_bytes;

/// Greatest cost of a body, in bytes for each byte of the body, in memory as on disk. Example: a
/// body of 1,000 bytes may cost 64,000.
pub const COST_PER_BYTE_MAX: usize = 64;

/// A body and its language.
pub enum Body<'a> {
    /// Records of the service's own formats.
    Own(Format, &'a [u8]),
    /// A body of another protocol, with a mapping for its names.
    Adapted(Protocol, &'a NameRules, &'a [u8]),
    /// Rows of comma-separated values for this header.
    Csv(CsvColumns, &'a [u8]),
}

/// Bytes that a body costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Greatest memory while the body was written, including the plane's copy.
    pub taken: usize,
    /// Stored bytes: names and rows.
    pub stored: usize,
    /// Memory of a process that reads the names and the newest samples for the first time.
    pub first_look: usize,
}

impl Cost {
    /// The largest of the three.
    #[must_use]
    pub fn max(self) -> usize {
        self.taken.max(self.stored).max(self.first_look)
    }
}

/// Writes a body to an empty plane in memory and has it read. Returns the cost, and the result of
/// the write.
///
/// # Panics
/// Panics if a plane in memory fails.
pub fn cost_of(
    body: Body<'_>,
    limits: &WriteLimits,
    now_ns: i64,
) -> (Cost, Result<(), WriteError>) {
    let plane = Plane::in_memory("acme").expect("random bytes");
    let mut outcome = Ok(());
    let taken = peak_bytes(|| outcome = write(&plane, body, limits, now_ns));
    let stored = plane.stats().expect("memory").space.total();
    let first_look = peak_bytes(|| {
        plane.trial().expect("memory").follow().expect("memory");
        plane.with_latest(now_ns + 1, i64::MAX, None, now_ns, |_| ()).expect("memory");
    });
    let stored = usize::try_from(stored).expect("it lies in memory");
    (Cost { taken, stored, first_look }, outcome)
}

fn write(
    plane: &Plane,
    body: Body<'_>,
    limits: &WriteLimits,
    now_ns: i64,
) -> Result<(), WriteError> {
    let when = Acknowledgement::Durable;
    let written = match body {
        Body::Own(format, bytes) => plane.write(format, bytes, limits, now_ns, when)?,
        Body::Adapted(protocol, mapping, bytes) => {
            let body = AdaptedBody { protocol, mapping, is_partial: true, bytes };
            plane.append_adapted(body, limits, now_ns, when)?.wait()?
        }
        Body::Csv(mut header, bytes) => {
            plane.write_csv(&mut header, bytes, limits, now_ns, when)?
        }
    };
    drop(written);
    Ok(())
}
