//! Images of the files of one directory that a power cut may leave.
//!
//! Everything that was not synced may be there or not, in any order and in part. What is assumed: a
//! sector of 512 bytes is written whole or not at all; a name of a directory changes at once or not
//! at all. A file and its name are synced apart. What a failed sync was to write may be on disk or
//! not, and no later sync brings it there unless it is written once more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dice::Dice;
use super::sites::Site;

const SECTOR_BYTES: usize = 512;
/// Writes reach a disk in pages, most often.
const PAGE_SECTORS: u64 = 8;

/// A file or a directory, by the order in which they came to be; 0 is the directory itself.
pub(crate) type Node = usize;

/// Change that a call made.
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
    /// All is synced, or the bytes of one write.
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

/// Directories (`None`) and files by their path, as a machine finds them when it starts.
pub(crate) type Image = BTreeMap<PathBuf, Option<Arc<Vec<u8>>>>;

/// The durable state and what may be there of all that came after it.
#[derive(Clone)]
pub(crate) struct Disk {
    nodes: BTreeMap<Node, Contents>,
    /// Changes so far: the time of a change.
    time: u64,
}

#[derive(Clone)]
enum Contents {
    File(File),
    Directory(Directory),
}

#[derive(Clone, Default)]
struct File {
    durable: Arc<Vec<u8>>,
    /// Sectors that differ from it, oldest state first.
    sectors: BTreeMap<u64, Vec<Version>>,
    /// Later lengths.
    lengths: Vec<(u64, u64)>,
    /// Sectors that a failed sync left behind: the next one takes them for written.
    given_up: Vec<u64>,
}

#[derive(Clone)]
struct Version {
    time: u64,
    bytes: [u8; SECTOR_BYTES],
}

#[derive(Clone, Default)]
struct Directory {
    durable: BTreeMap<String, Node>,
    pending: Vec<(u64, Entry)>,
}

#[derive(Clone)]
enum Entry {
    Is(String, Node),
    Moved(String, String, Node),
    Gone(String),
}

/// Choice of the changes that were not synced and are there after the cut.
pub(crate) enum Fate {
    Nothing,
    Everything,
    /// In the order of the calls, up to this time; the last one in part.
    Until(u64, u64),
    /// Each by itself, with this chance in a hundred.
    Each {
        percent: u64,
        whole_pages: bool,
    },
    /// Those of these times.
    Chosen(BTreeSet<u64>),
}

impl Disk {
    /// A disk on which `image` is durable.
    pub(crate) fn new() -> Self {
        let root = Contents::Directory(Directory::default());
        Self { nodes: BTreeMap::from([(0, root)]), time: 0 }
    }

    /// Puts a durable file or directory (`None`) in place.
    pub(crate) fn put(&mut self, directory: Node, name: &str, node: Node, bytes: Option<Vec<u8>>) {
        self.directory(directory).durable.insert(name.to_owned(), node);
        let contents = match bytes {
            Some(bytes) => Contents::File(File { durable: Arc::new(bytes), ..File::default() }),
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
                let entry = Entry::Is(name.clone(), *node);
                self.directory(*directory).pending.push((time, entry));
            }
            Change::Rename { directory, from, to } => {
                let directory = self.directory(*directory);
                let node = directory.now()[from];
                directory.pending.push((time, Entry::Moved(from.clone(), to.clone(), node)));
            }
            Change::Remove { directory, name } => {
                self.directory(*directory).pending.push((time, Entry::Gone(name.clone())));
            }
            Change::Write { file, at, bytes } => self.file(*file).write(time, *at, bytes),
            Change::Resize { file, length } => self.file(*file).lengths.push((time, *length)),
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
                    file.given_up = file.sectors.keys().copied().collect();
                }
            }
        }
    }

    /// One of the states that a power cut now may leave.
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

    /// The state that a power cut leaves with this fate, and, but for [`Fate::Each`] and the content
    /// of space that was never written, no dice.
    pub(crate) fn cut_with(&self, fate: &Fate, dice: &mut Dice) -> Image {
        let mut image = Image::new();
        self.walk(0, Path::new(""), fate, dice, &mut image);
        image
    }

    /// True where a sync of this file or directory would make something durable.
    pub(crate) fn is_unsynced(&self, node: Node) -> bool {
        match self.nodes.get(&node) {
            Some(Contents::File(file)) => !file.sectors.is_empty() || !file.lengths.is_empty(),
            Some(Contents::Directory(directory)) => !directory.pending.is_empty(),
            None => false,
        }
    }

    /// Times of the changes that are not durable.
    pub(crate) fn pending(&self) -> BTreeSet<u64> {
        let mut times = BTreeSet::new();
        for contents in self.nodes.values() {
            match contents {
                Contents::File(file) => {
                    let writes = file.sectors.values().flatten().map(|version| version.time);
                    times.extend(writes.chain(file.lengths.iter().map(|(time, _)| *time)));
                }
                Contents::Directory(directory) => {
                    times.extend(directory.pending.iter().map(|(time, _)| *time));
                }
            }
        }
        times
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

    /// The time of the oldest change that is not durable, else now.
    fn pending_since(&self) -> u64 {
        let times = self.nodes.values().filter_map(|contents| match contents {
            Contents::File(file) => {
                let writes = file.sectors.values().flatten().map(|version| version.time);
                writes.chain(file.lengths.iter().map(|(time, _)| *time)).min()
            }
            Contents::Directory(directory) => directory.pending.first().map(|(time, _)| *time),
        });
        times.min().unwrap_or(self.time)
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

impl File {
    fn length(&self) -> u64 {
        self.lengths.last().map_or(self.durable.len() as u64, |(_, length)| *length)
    }

    fn write(&mut self, time: u64, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let offset = usize::try_from(at).unwrap() + done;
            let (sector, within) = (offset / SECTOR_BYTES, offset % SECTOR_BYTES);
            let count = (SECTOR_BYTES - within).min(bytes.len() - done);
            let versions = self.sectors.entry(sector as u64).or_default();
            let before = versions.last().map(|version| version.bytes);
            let mut now = before.unwrap_or_else(|| durable_sector(&self.durable, sector));
            now[within..within + count].copy_from_slice(&bytes[done..done + count]);
            versions.push(Version { time, bytes: now });
            self.given_up.retain(|given_up| *given_up != sector as u64);
            done += count;
        }
        let end = at + bytes.len() as u64;
        if end > self.length() {
            self.lengths.push((time, end));
        }
    }

    fn sync(&mut self) {
        let length = usize::try_from(self.length()).unwrap();
        if self.sectors.is_empty() && self.lengths.is_empty() {
            return;
        }
        self.lengths.clear();
        let durable = Arc::make_mut(&mut self.durable);
        durable.resize(length, 0);
        for (sector, versions) in std::mem::take(&mut self.sectors) {
            if self.given_up.contains(&sector) {
                self.sectors.insert(sector, versions);
            } else if let Some(version) = versions.last() {
                put_sector(durable, sector, &version.bytes);
            }
        }
    }

    /// Makes durable what a single write has written.
    fn sync_bytes(&mut self, bytes: &Range<u64>) {
        let durable = Arc::make_mut(&mut self.durable);
        let end = usize::try_from(bytes.end).unwrap();
        durable.resize(durable.len().max(end), 0);
        let sectors = bytes.start / SECTOR_BYTES as u64..bytes.end.div_ceil(SECTOR_BYTES as u64);
        for sector in sectors {
            let versions = self.sectors.remove(&sector).unwrap_or_default();
            if let Some(version) = versions.last() {
                put_sector(durable, sector, &version.bytes);
            }
        }
    }

    fn cut(&self, fate: &Fate, dice: &mut Dice) -> Arc<Vec<u8>> {
        if self.sectors.is_empty() && self.lengths.is_empty() {
            return Arc::clone(&self.durable);
        }
        let before = |until: u64| {
            let reached = self.lengths.iter().take_while(|(time, _)| *time <= until).last();
            reached.map_or(self.durable.len() as u64, |(_, length)| *length)
        };
        let length = match fate {
            Fate::Nothing => self.durable.len() as u64,
            Fate::Everything => self.length(),
            Fate::Until(until, _) => before(*until),
            Fate::Chosen(times) => {
                let last = self.lengths.iter().rfind(|(time, _)| times.contains(time));
                last.map_or(self.durable.len() as u64, |(_, length)| *length)
            }
            Fate::Each { .. } => match dice.index(self.lengths.len() + 1) {
                0 => self.durable.len() as u64,
                at => self.lengths[at - 1].1,
            },
        };
        let mut bytes = self.durable.to_vec();
        // Space that was given to a file and never written shows anything.
        let noise = if dice.below(4) == 0 { 0xa5 } else { 0 };
        bytes.resize(usize::try_from(length).unwrap(), noise);
        let mut page = (u64::MAX, false);
        for (sector, versions) in &self.sectors {
            let kept = match fate {
                Fate::Nothing => 0,
                Fate::Everything => versions.len(),
                Fate::Until(until, sectors) => versions
                    .iter()
                    .take_while(|version| {
                        let is_torn_off = version.time == *until && sector % 9 >= *sectors;
                        version.time <= *until && !is_torn_off
                    })
                    .count(),
                Fate::Chosen(times) => {
                    let last = versions.iter().rposition(|version| times.contains(&version.time));
                    last.map_or(0, |last| last + 1)
                }
                Fate::Each { percent, whole_pages } => {
                    if !whole_pages || page.0 != sector / PAGE_SECTORS {
                        page = (sector / PAGE_SECTORS, dice.below(100) < *percent);
                    }
                    if !page.1 {
                        0
                    } else if *whole_pages {
                        versions.len()
                    } else {
                        1 + dice.index(versions.len())
                    }
                }
            };
            if kept > 0 {
                put_sector(&mut bytes, *sector, &versions[kept - 1].bytes);
            }
        }
        Arc::new(bytes)
    }
}

fn durable_sector(durable: &[u8], sector: usize) -> [u8; SECTOR_BYTES] {
    let mut bytes = [0; SECTOR_BYTES];
    let rest = durable.get(sector * SECTOR_BYTES..).unwrap_or_default();
    let count = rest.len().min(SECTOR_BYTES);
    bytes[..count].copy_from_slice(&rest[..count]);
    bytes
}

/// Writes a sector as far as the file reaches.
fn put_sector(bytes: &mut [u8], sector: u64, content: &[u8; SECTOR_BYTES]) {
    let start = usize::try_from(sector).unwrap() * SECTOR_BYTES;
    if let Some(rest) = bytes.get_mut(start..) {
        let count = rest.len().min(SECTOR_BYTES);
        rest[..count].copy_from_slice(&content[..count]);
    }
}

impl Directory {
    fn now(&self) -> BTreeMap<String, Node> {
        let mut names = self.durable.clone();
        self.pending.iter().for_each(|(_, entry)| entry.apply(&mut names));
        names
    }

    fn sync(&mut self) {
        self.durable = self.now();
        self.pending.clear();
    }

    fn cut(&self, fate: &Fate, dice: &mut Dice) -> BTreeMap<String, Node> {
        let mut names = self.durable.clone();
        for (time, entry) in &self.pending {
            let is_kept = match fate {
                Fate::Nothing => false,
                Fate::Everything => true,
                Fate::Until(until, _) => time <= until,
                Fate::Chosen(times) => times.contains(time),
                Fate::Each { percent, .. } => dice.below(100) < *percent,
            };
            if is_kept {
                entry.apply(&mut names);
            }
        }
        names
    }
}

impl Entry {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Is(name, node) => {
                names.insert(name.clone(), *node);
            }
            Self::Moved(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            Self::Gone(name) => {
                names.remove(name);
            }
        }
    }
}

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
