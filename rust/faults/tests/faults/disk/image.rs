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

/// Reads the files below `root`, except locks, which do not outlive a machine.
pub(crate) fn read(root: &Path) -> Image {
    let mut image = Image::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let bytes = path.is_file().then(|| Arc::new(std::fs::read(&path).unwrap()));
            if bytes.is_none() {
                directories.push(path.clone());
            }
            if !is_lock(path.file_name().unwrap().to_str().unwrap()) {
                image.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
            }
        }
    }
    image
}

/// Returns true for the name of a file that does not outlive a machine.
pub(crate) fn is_lock(name: &str) -> bool {
    name.ends_with("-lock") || name == "lock.mdb"
}
