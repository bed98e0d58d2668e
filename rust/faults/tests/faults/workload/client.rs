//! A client of one plane, and the promises that it got.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleetcast_faults::model::error::Error;
use fleetcast_faults::plane::{KeyFile, PendingBatch, Plane};
use fleetcast_faults::storage::seal::MasterKeys;
use fleetcast_faults::storage::store::DirectoryPlanes;

use super::{CALLS_FAIL_MAX, MASTER_KEY, expected_at};
use crate::batches::{Event, Expected, Verdict, extent};
use crate::calls;

/// A client that writes to a plane, and knows the promise for each batch.
pub(crate) struct Client {
    directory: PathBuf,
    /// Batches that the client waits for later.
    pub(super) held: Vec<(u32, PendingBatch)>,
    pub(super) plane: Option<Arc<Plane>>,
    /// Events, with the number of changes made by then.
    pub(crate) events: Vec<(usize, Event)>,
    pub(super) next_batch: u32,
    /// Number of faults that ended the use of an open plane.
    pub(crate) reopened: u32,
    /// Faults that no image shows.
    pub(crate) faults: Vec<String>,
}

fn opened(planes: DirectoryPlanes, name: &str) -> Result<Plane, Error> {
    let plane = Plane::open(&planes, name, &MASTER_KEY, "acme")?;
    plane.follow_key_file(KeyFile::new(Arc::new(planes), name, MasterKeys::from(&MASTER_KEY)));
    Ok(plane)
}

impl Client {
    /// Makes the plane in `directory`. Tries again if it fails.
    pub(crate) fn create(directory: &Path) -> Self {
        let mut client = Self::new(directory, 0);
        let (planes, plane) = DirectoryPlanes::of_plane(directory).unwrap();
        while let Err(error) = Plane::create(&planes, plane, &MASTER_KEY) {
            client.expect_fault(&error);
            drop(std::fs::remove_dir_all(directory));
        }
        client.note(Event::Created);
        client
    }

    fn new(directory: &Path, next_batch: u32) -> Self {
        let directory = directory.to_owned();
        Self {
            directory,
            held: Vec::new(),
            plane: None,
            events: Vec::new(),
            next_batch,
            reopened: 0,
            faults: Vec::new(),
        }
    }

    /// Opens the plane of an image.
    ///
    /// # Errors
    /// Returns the errors of the plane.
    pub(crate) fn open(directory: &Path, next_batch: u32) -> Result<Self, Error> {
        let mut client = Self::new(directory, next_batch);
        let (planes, plane) = DirectoryPlanes::of_plane(directory)?;
        client.plane = Some(Arc::new(opened(planes, plane)?));
        Ok(client)
    }

    /// Makes another client of the open plane, with other numbers for its batches.
    pub(crate) fn beside(&mut self, next_batch: u32) -> Self {
        self.plane();
        let mut client = Self::new(&self.directory, next_batch);
        client.plane.clone_from(&self.plane);
        client
    }

    /// Counts batches in doubt as stored if a read has shown them, and as never stored if not.
    pub(crate) fn settle(&mut self, shown: &BTreeSet<u32>) {
        let expected = self.expected(&Expected::default());
        for batch in expected.in_doubt() {
            let is_shown = shown.contains(&batch);
            self.note(if is_shown { Event::Shown(batch) } else { Event::Refused(batch) });
        }
    }

    /// Takes over the events of another client, which is done.
    pub(crate) fn merge(&mut self, other: Self) {
        self.events.extend(other.events);
        self.events.sort_by_key(|(position, _)| *position);
        self.faults.extend(other.faults);
    }

    pub(crate) fn judge(&mut self, expected: &Expected) -> Verdict {
        expected.judge(self.plane())
    }

    /// Returns the number of batches that reads of the plane see.
    pub(crate) fn batches(&mut self) -> u64 {
        let plane = self.plane();
        plane.follow().unwrap();
        plane.stats().unwrap().counts.batches
    }

    /// Returns true if reads of the plane see a batch.
    pub(crate) fn shows(&mut self, batch: u32) -> bool {
        let look = || self.plane().delete(&extent(batch), true).unwrap();
        std::iter::repeat_with(look).flatten().next().is_some_and(|found| found.rows > 0)
    }

    /// Returns everything that was promised so far.
    pub(crate) fn expected(&self, before: &Expected) -> Expected {
        expected_at(before, &self.events, usize::MAX)
    }

    /// Returns the number of segment files that no manifest names.
    pub(crate) fn orphans(&mut self) -> usize {
        let files = self.directory.join("segments").read_dir().map_or(0, Iterator::count);
        let (stats, hours) = (self.plane().stats().unwrap(), self.plane().kept_hours().unwrap());
        // The checkpoint is not a segment of a day.
        let named = stats.segments + hours.segments;
        files.saturating_sub(usize::try_from(named).unwrap() + 1)
    }

    pub(crate) fn note(&mut self, event: Event) {
        self.events.push((calls::position(), event));
    }

    /// Returns the plane. Opens it if it is closed, as the service does with every request.
    pub(super) fn plane(&mut self) -> &Plane {
        if self.plane.is_none() {
            let (planes, plane) = DirectoryPlanes::of_plane(&self.directory).unwrap();
            let open = || opened(planes.clone(), plane);
            let plane = (0..=CALLS_FAIL_MAX).find_map(|_| open().ok());
            self.plane = Some(Arc::new(plane.expect("few calls fail")));
        }
        self.plane.as_ref().expect("it was opened")
    }

    /// Records an error that no fault explains.
    pub(super) fn expect_fault(&mut self, error: &Error) {
        if !matches!(error, Error::DiskFull | Error::Io { .. } | Error::Lost { .. }) {
            self.faults.push(format!("{error:?}"));
        }
    }
}
