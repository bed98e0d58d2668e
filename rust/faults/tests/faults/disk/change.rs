//! Changes that calls make to files, in the order of the calls.

use std::ops::Range;
use std::sync::Arc;

use crate::sites::Site;

/// A file or a directory, numbered in the order of creation. 0 is the recorded directory.
pub(crate) type Node = usize;

/// A change that a call made.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Make {
        directory: Node,
        name: String,
        node: Node,
        is_directory: bool,
    },
    Rename {
        directory: Node,
        from: String,
        to: String,
    },
    Remove {
        directory: Node,
        name: String,
    },
    Write {
        file: Node,
        at: u64,
        bytes: Arc<[u8]>,
    },
    Resize {
        file: Node,
        length: u64,
    },
    /// A sync of the whole file, or of the bytes of one write.
    Sync {
        node: Node,
        site: Site,
        bytes: Option<Range<u64>>,
    },
    SyncFailed {
        node: Node,
    },
    Nothing,
}
