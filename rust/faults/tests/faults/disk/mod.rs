//! Images of the files of one directory that a power cut may leave.
//!
//! Changes without a sync may survive or not, in any order and in part. The model assumes that a
//! sector of 512 bytes is written whole or not at all. A name of a directory changes at once or not
//! at all. A file and its name are synced separately. The changes of a failed sync may be on disk
//! or not. No later sync writes them, unless they are written again.

mod change;
mod fate;
mod image;

mod directory;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(crate) use self::change::{Change, Node};
use self::directory::Directory;
pub(crate) use self::fate::Fate;
use self::file::File;
pub(crate) use self::image::{Image, is_lock, read, restore};
use super::dice::Dice;

/// Most sets of surviving changes that are tried for a power cut. If there are no more sets than
/// this, all are tried. Otherwise this number is drawn. Example: all 16 sets of 4 changes are
/// tried.
const SETS_MAX: usize = 16;

/// The durable state, and the later changes that may survive.
#[derive(Clone)]
pub(crate) struct Disk {
    nodes: BTreeMap<Node, Contents>,
    /// Number of changes so far, which is the time of a change.
    time: u64,
}

#[derive(Clone)]
enum Contents {
    File(File),
    Directory(Directory),
}

impl Contents {
    /// Returns the times of the changes that are not durable.
    fn pending(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::File(file) => Box::new(file.pending()),
            Self::Directory(directory) => Box::new(directory.pending()),
        }
    }
}

impl Disk {
    /// Makes an empty disk.
    pub(crate) fn new() -> Self {
        let root = Contents::Directory(Directory::default());
        Self { nodes: BTreeMap::from([(0, root)]), time: 0 }
    }

    /// Makes a disk on which all files are durable.
    pub(crate) fn of(files: &Image) -> Self {
        let (mut disk, mut nodes) = (Self::new(), BTreeMap::from([(PathBuf::new(), 0)]));
        for (path, bytes) in files {
            let node = nodes.len();
            let name = path.file_name().unwrap().to_str().unwrap();
            let bytes = bytes.as_ref().map(|bytes| bytes.to_vec());
            disk.put(nodes[path.parent().unwrap()], name, node, bytes);
            nodes.insert(path.clone(), node);
        }
        disk
    }

    /// Adds a durable file or directory (`None`).
    pub(crate) fn put(&mut self, directory: Node, name: &str, node: Node, bytes: Option<Vec<u8>>) {
        self.directory(directory).put(name, node);
        let contents = match bytes {
            Some(bytes) => Contents::File(File::new(bytes)),
            None => Contents::Directory(Directory::default()),
        };
        self.nodes.insert(node, contents);
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        self.time += 1;
        let time = self.time;
        match change {
            Change::Make { directory, name, node, is_directory } => {
                let contents = if *is_directory {
                    Contents::Directory(Directory::default())
                } else {
                    Contents::File(File::default())
                };
                self.nodes.insert(*node, contents);
                self.directory(*directory).make(time, name, *node);
            }
            Change::Rename { directory, from, to } => {
                self.directory(*directory).rename(time, from, to);
            }
            Change::Remove { directory, name } => self.directory(*directory).remove(time, name),
            Change::Write { file, at, bytes } => self.file(*file).write(time, *at, bytes),
            Change::Resize { file, length } => self.file(*file).resize(time, *length),
            Change::Nothing => {}
            Change::Sync { node, bytes, .. } => match self.nodes.get_mut(node) {
                Some(Contents::File(file)) => match bytes {
                    Some(bytes) => file.sync_bytes(bytes),
                    None => file.sync(),
                },
                Some(Contents::Directory(directory)) => directory.sync(),
                None => {}
            },
            Change::SyncFailed { node } => {
                if let Some(Contents::File(file)) = self.nodes.get_mut(node) {
                    file.fail_sync();
                }
            }
        }
    }

    /// Returns the largest number of a file or directory so far.
    pub(crate) fn last(&self) -> Node {
        *self.nodes.keys().next_back().unwrap()
    }

    /// Returns the files and directories that programs see now, by their paths.
    pub(crate) fn present(&self) -> BTreeMap<PathBuf, Node> {
        let mut nodes = BTreeMap::from([(PathBuf::new(), 0)]);
        let mut directories = vec![(PathBuf::new(), 0)];
        while let Some((path, node)) = directories.pop() {
            if let Contents::Directory(directory) = &self.nodes[&node] {
                let inside = directory.now().into_iter();
                let inside = inside.map(|(name, node)| (path.join(name), node)).collect::<Vec<_>>();
                nodes.extend(inside.iter().cloned());
                directories.extend(inside);
            }
        }
        nodes
    }

    /// Returns one of the states that a power cut now may leave.
    pub(crate) fn cut(&self, dice: &mut Dice) -> Image {
        let since = self.pending_since();
        let fate = match dice.below(8) {
            0 => Fate::Nothing,
            1 => Fate::Everything,
            2..=3 => Fate::Until(since + dice.below(self.time + 1 - since), dice.below(9)),
            _ => {
                Fate::Each { percent: [10, 50, 90][dice.index(3)], whole_pages: dice.below(2) == 0 }
            }
        };
        self.cut_with(&fate, dice)
    }

    /// Returns the state that a power cut leaves with this fate. The dice decide only
    /// [`Fate::Each`] and the content of space that was never written.
    pub(crate) fn cut_with(&self, fate: &Fate, dice: &mut Dice) -> Image {
        let mut image = Image::new();
        self.walk(0, Path::new(""), fate, dice, &mut image);
        image
    }

    pub(crate) fn is_directory(&self, node: Node) -> bool {
        matches!(self.nodes.get(&node), Some(Contents::Directory(_)))
    }

    /// Returns true if a sync of this file or directory would make a change durable.
    pub(crate) fn is_unsynced(&self, node: Node) -> bool {
        self.nodes.get(&node).is_some_and(|contents| contents.pending().next().is_some())
    }

    /// Returns the times of the changes that are not durable.
    fn pending(&self) -> BTreeSet<u64> {
        self.nodes.values().flat_map(Contents::pending).collect()
    }

    /// Returns all sets of the changes that are not durable, or some of the sets.
    pub(crate) fn fates(&self, dice: &mut Dice) -> Vec<Fate> {
        let pending: Vec<u64> = self.pending().into_iter().collect();
        let chosen = |set: u64| {
            let times = pending.iter().enumerate();
            Fate::Chosen(
                times.filter(|(at, _)| set >> at & 1 == 1).map(|(_, time)| *time).collect(),
            )
        };
        let is_all = pending.len() <= SETS_MAX.ilog2() as usize;
        let sets: Vec<u64> = if is_all {
            (0..1 << pending.len()).collect()
        } else {
            [0, u64::MAX].into_iter().chain((2..SETS_MAX).map(|_| dice.below(1 << 31))).collect()
        };
        sets.into_iter().map(chosen).collect()
    }

    fn walk(&self, node: Node, path: &Path, fate: &Fate, dice: &mut Dice, image: &mut Image) {
        match &self.nodes[&node] {
            Contents::File(file) => {
                image.insert(path.to_owned(), Some(file.cut(fate, dice)));
            }
            Contents::Directory(directory) => {
                if node != 0 {
                    image.insert(path.to_owned(), None);
                }
                for (name, node) in directory.cut(fate, dice) {
                    self.walk(node, &path.join(name), fate, dice, image);
                }
            }
        }
    }

    /// Returns the time of the oldest change that is not durable, or the current time.
    fn pending_since(&self) -> u64 {
        self.nodes.values().flat_map(Contents::pending).min().unwrap_or(self.time)
    }

    fn directory(&mut self, node: Node) -> &mut Directory {
        match self.nodes.get_mut(&node) {
            Some(Contents::Directory(directory)) => directory,
            _ => panic!("{node} is no directory"),
        }
    }

    fn file(&mut self, node: Node) -> &mut File {
        match self.nodes.get_mut(&node) {
            Some(Contents::File(file)) => file,
            _ => panic!("{node} is no file"),
        }
    }
}
