//! The store on disk and the store in memory, step by step.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::storage::store::testing::{self, Subject};

struct Disk {
    directory: PathBuf,
    store: Option<LmdbStore>,
}

impl Subject for Disk {
    const SHOWS_LEFT: bool = true;
    const READS_REMOVED: bool = false;

    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(LmdbStore::open(&self.directory).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn disk_and_twin_answer_alike(steps in testing::steps()) {
        let directory = tempfile::tempdir().unwrap();
        let store = Some(LmdbStore::create(directory.path()).unwrap());
        let mut disk = Disk { directory: directory.path().to_owned(), store };
        testing::answer_alike(&mut disk, steps)?;
    }
}
