//! Content of a file: the durable content, and versions of its sectors that may be lost.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::fate::Fate;
use crate::dice::Dice;

const SECTOR_BYTES: usize = 512;
/// Sectors of a page. Writes mostly reach a disk in pages.
const PAGE_SECTORS: u64 = 8;

#[derive(Clone, Default)]
pub(super) struct File {
    durable: Arc<Vec<u8>>,
    /// Sectors that differ from the durable content, oldest version first.
    sectors: BTreeMap<u64, Vec<Version>>,
    /// Later lengths, with the times from which they hold.
    lengths: Vec<(u64, u64)>,
    /// Sectors that a failed sync left behind. The next sync takes them for written.
    given_up: Vec<u64>,
}

#[derive(Clone)]
struct Version {
    time: u64,
    bytes: [u8; SECTOR_BYTES],
}

impl File {
    pub(super) fn new(durable: Vec<u8>) -> Self {
        Self { durable: Arc::new(durable), ..Self::default() }
    }

    fn length(&self) -> u64 {
        self.lengths.last().map_or(self.durable.len() as u64, |(_, length)| *length)
    }

    pub(super) fn write(&mut self, time: u64, at: u64, bytes: &[u8]) {
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

    pub(super) fn resize(&mut self, time: u64, length: u64) {
        self.lengths.push((time, length));
    }

    /// Returns the times of the changes that are not durable.
    pub(super) fn pending(&self) -> impl Iterator<Item = u64> {
        let writes = self.sectors.values().flatten().map(|version| version.time);
        writes.chain(self.lengths.iter().map(|(time, _)| *time))
    }

    pub(super) fn sync(&mut self) {
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

    /// Makes the bytes of a single write durable.
    pub(super) fn sync_bytes(&mut self, bytes: &Range<u64>) {
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

    /// Gives up the sectors that a failed sync had to write.
    pub(super) fn fail_sync(&mut self) {
        self.given_up = self.sectors.keys().copied().collect();
    }

    /// Returns the content that exists after a cut.
    pub(super) fn cut(&self, fate: &Fate, dice: &mut Dice) -> Arc<Vec<u8>> {
        if self.sectors.is_empty() && self.lengths.is_empty() {
            return Arc::clone(&self.durable);
        }
        let length = self.length_after(fate, dice);
        let mut bytes = self.durable.to_vec();
        // Space that was given to a file and never written may have any content.
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

    fn length_after(&self, fate: &Fate, dice: &mut Dice) -> u64 {
        let durable = self.durable.len() as u64;
        let of = |change: Option<&(u64, u64)>| change.map_or(durable, |(_, length)| *length);
        match fate {
            Fate::Nothing => durable,
            Fate::Everything => self.length(),
            Fate::Until(until, _) => {
                of(self.lengths.iter().take_while(|(time, _)| time <= until).last())
            }
            Fate::Chosen(times) => of(self.lengths.iter().rfind(|(time, _)| times.contains(time))),
            Fate::Each { .. } => match dice.index(self.lengths.len() + 1) {
                0 => durable,
                at => self.lengths[at - 1].1,
            },
        }
    }
}

fn durable_sector(durable: &[u8], sector: usize) -> [u8; SECTOR_BYTES] {
    let mut bytes = [0; SECTOR_BYTES];
    let rest = durable.get(sector * SECTOR_BYTES..).unwrap_or_default();
    let count = rest.len().min(SECTOR_BYTES);
    bytes[..count].copy_from_slice(&rest[..count]);
    bytes
}

/// Writes a sector, as far as the file reaches.
fn put_sector(bytes: &mut [u8], sector: u64, content: &[u8; SECTOR_BYTES]) {
    let start = usize::try_from(sector).unwrap() * SECTOR_BYTES;
    if let Some(rest) = bytes.get_mut(start..) {
        let count = rest.len().min(SECTOR_BYTES);
        rest[..count].copy_from_slice(&content[..count]);
    }
}
