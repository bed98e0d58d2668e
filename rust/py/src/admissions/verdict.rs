//! A decision about a write, and what that rests on.

use std::sync::{Arc, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fleetcast_core::plane::Plane;
use fleetcast_core::wire::{Mapping, Protocol};
use fleetcast_front::admission::files::PlaneFiles;
use fleetcast_front::admission::lmdb::Span;
use fleetcast_front::fair::Owner;
use fleetcast_limiter::{Client, Limiter};

use super::books::Books;
use crate::arguments::BatchLimits;
use crate::open_plane::OpenPlane;

/// State of the world before a request was decided on.
pub(crate) struct Basis {
    pub(super) control: Option<Span>,
    pub(super) settings: u64,
    pub(super) at: Instant,
}

/// A client as the limiter knows it.
pub(super) struct Limited {
    /// `None` if its requests are not counted.
    pub(super) rates: Option<Arc<Limiter>>,
    /// `None` if nobody is locked out.
    pub(super) lockouts: Option<Arc<Limiter>>,
    pub(super) client: Client,
}

/// Permission to write to a plane.
pub(super) struct Verdict {
    pub(super) control: Span,
    pub(super) settings: u64,
    /// Seconds since 1970 at which the key is no longer good.
    pub(super) expires_at: Option<i64>,
    /// `None` for a plane in a database, which says by itself if it is gone.
    pub(super) files: Option<PlaneFiles>,
    pub(super) plane: Weak<OpenPlane>,
    pub(super) limits: BatchLimits,
    /// Names and language of a body that is not JSON.
    pub(super) adapted: Option<(Arc<Mapping>, Protocol)>,
    pub(super) body_bytes_max: u64,
    pub(super) account: Owner,
    pub(super) limited: Limited,
    /// Fields of the answer, one of which is the id of its request.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) books: Books,
}

impl Verdict {
    /// The status of an answer, and true where it has no body.
    pub(super) fn status(&self) -> (&'static str, bool) {
        if self.adapted.is_some() { ("204 No Content", true) } else { ("202 Accepted", false) }
    }

    /// True where nothing that it rests on has changed.
    pub(super) fn stands(&self, control: Option<Span>, settings: u64) -> bool {
        control.is_some_and(|control| control.continues(&self.control))
            && settings == self.settings
            && is_key_good(self.expires_at)
            && self.files.as_ref().is_none_or(PlaneFiles::carry)
    }

    /// The plane, for one call, and its handle; `None` where it is closed.
    pub(super) fn plane(&self) -> Option<(Arc<OpenPlane>, Arc<Plane>)> {
        let open = self.plane.upgrade()?;
        let plane = open.for_a_call().ok()?;
        Some((open, plane))
    }
}

/// True before the end of a key, in seconds since 1970, if it has one.
pub(crate) fn is_key_good(expires_at: Option<i64>) -> bool {
    let Some(expires_at) = expires_at else { return true };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    u64::try_from(expires_at).is_ok_and(|expires_at| now < expires_at)
}

impl Limited {
    /// Counts a request; false where it is to be refused, or where that cannot be known.
    pub(super) fn admits(&self) -> bool {
        let rates = self.rates.as_ref();
        rates.is_none_or(|limiter| matches!(limiter.admit(self.client, None), Ok(None)))
    }

    /// False where the client is locked out, or where that cannot be known.
    pub(super) fn is_free(&self) -> bool {
        let lockouts = self.lockouts.as_ref();
        lockouts.is_none_or(|limiter| matches!(limiter.lockout(self.client, None), Ok(None)))
    }
}
