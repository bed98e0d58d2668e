//! Files as a machine finds them when it starts again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories (`None`) and files by their path.
pub(crate) type Image = BTreeMap<PathBuf, Option<Arc<Vec<u8>>>>;

/// Writes an image below `root`, which is empty.
pub(crate) fn restore(image: &Image, root: &Path) {
    for (path, bytes) in image {
        let path = root.join(path);
        match bytes {
            Some(bytes) => std::fs::write(path, &**bytes).unwrap(),
            None => std::fs::create_dir(path).unwrap(),
        }
    }
}
