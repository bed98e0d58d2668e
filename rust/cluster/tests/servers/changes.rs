//! Copies of records follow the changes of other processes, whatever becomes of the database.

use std::sync::Arc;

use fleetcast_cluster::{ClusterRecords, Replica};
use fleetcast_core::storage::records::{Item, RecordStore, RecordTransaction};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::database::Database;

/// More records than the row of a change names.
const TOO_MANY: usize = 1_025;
const SPACES: [&str; 2] = ["a", "b"];

/// A space, a key, and the value; `None` deletes the record.
type RecordChange = (usize, u8, Option<u8>);

#[derive(Clone, Debug)]
enum Step {
    Change(Vec<RecordChange>),
    /// A node of an older release leaves no row.
    OlderChange(Vec<RecordChange>),
    LargeChange(u8),
    /// Only rows of the so many last changes stay.
    Trim(i64),
    Save,
    /// The saved state is put back, and the installation goes on from there.
    PutBack(Vec<Vec<RecordChange>>),
}

fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let record = || (0..SPACES.len(), 0..4_u8, prop::option::of(any::<u8>()));
    let records = || prop::collection::vec(record(), 1..4);
    let step = prop_oneof![
        8 => records().prop_map(Step::Change),
        2 => records().prop_map(Step::OlderChange),
        1 => any::<u8>().prop_map(Step::LargeChange),
        1 => (0..3_i64).prop_map(Step::Trim),
        2 => Just(Step::Save),
        3 => prop::collection::vec(records(), 0..4).prop_map(Step::PutBack),
    ];
    prop::collection::vec((step, any::<bool>()), 1..16)
}

/// An installation, and the two releases that change its records.
struct Releases {
    database: Database,
    own: Replica,
    older: ClusterRecords,
}

const SAVE: &str = "DROP TABLE IF EXISTS saved_records, saved_record, saved_change; \
    CREATE TABLE saved_records AS TABLE records; CREATE TABLE saved_record AS TABLE record; \
    CREATE TABLE saved_change AS TABLE record_change";
const PUT_BACK: &str = "DELETE FROM records; DELETE FROM record; DELETE FROM record_change; \
    INSERT INTO records TABLE saved_records; INSERT INTO record TABLE saved_record; \
    INSERT INTO record_change TABLE saved_change";

impl Releases {
    fn new(database: Database) -> Self {
        let cluster = database.installed();
        let older = ClusterRecords::new(Arc::clone(&cluster), "control");
        database.run(SAVE);
        Self { own: Replica::new(cluster, "control", false), older, database }
    }

    fn make(&self, step: &Step) {
        match step {
            Step::Change(records) => change(&self.own, records),
            Step::OlderChange(records) => change(&self.older, records),
            Step::LargeChange(value) => put_many(&self.own, TOO_MANY, *value),
            Step::Trim(rows) => drop(self.database.run(&format!(
                "DELETE FROM record_change WHERE version <= (SELECT version FROM records) - {rows}"
            ))),
            Step::Save => drop(self.database.run(SAVE)),
            Step::PutBack(changes) => {
                self.database.run(PUT_BACK);
                for records in changes {
                    change(&self.own, records);
                }
            }
        }
    }
}

fn change(store: &dyn RecordStore, records: &[RecordChange]) {
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    for (space, key, value) in records {
        match value {
            Some(value) => view.put(SPACES[*space], &[*key], &[*value]),
            None => view.delete(SPACES[*space], &[*key]),
        }
    }
    view.commit().unwrap();
}

fn put_many(store: &dyn RecordStore, count: usize, value: u8) {
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    for number in 0..count {
        view.put("a", format!("many {number}").as_bytes(), &[value]);
    }
    view.commit().unwrap();
}

fn content(view: &mut RecordTransaction) -> (u64, Vec<Vec<Item>>) {
    let items = SPACES.map(|space| view.under(space, b"", b"", 2 * TOO_MANY).unwrap().0);
    (view.version(), items.to_vec())
}

fn reading(store: &dyn RecordStore) -> RecordTransaction {
    RecordTransaction::new(store.begin(false).unwrap())
}

fn follows(database: Database, steps: &[(Step, bool)]) -> TestCaseResult {
    let releases = Releases::new(database);
    // Its thread asks beside the test.
    let follower = Replica::new(releases.database.open(), "control", true);
    let mut before = reading(&follower);
    let mut known = content(&mut before);
    for (step, is_looked_at) in steps {
        releases.make(step);
        // An older release leaves nothing to tell two histories by.
        if *is_looked_at || matches!(step, Step::PutBack(_)) {
            follower.renew().unwrap();
            prop_assert_eq!(content(&mut before), known, "a snapshot stays as it was");
            before = reading(&follower);
            known = content(&mut before);
            prop_assert_eq!(&known, &content(&mut reading(&releases.older)), "after {:?}", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_copy_equals_the_database_after_all_that_happens_to_it(steps in steps()) {
        if let Some(database) = Database::new() {
            follows(database, &steps)?;
        }
    }
}

/// Each process asks twice a second, and an installation may have ten thousand accounts.
#[test]
fn news_are_read_record_by_record_and_all_records_only_if_a_change_left_no_row() {
    let Some(database) = Database::new() else { return };
    let (key, other) = (vec![(0, 1, Some(1))], vec![(0, 2, Some(1))]);
    let releases = Releases::new(database);
    change(&releases.own, &other);
    let follower = Replica::new(releases.database.open(), "control", false);
    assert!(follower.renew().unwrap());
    releases.database.run(
        "CREATE FUNCTION refuse() RETURNS bool LANGUAGE plpgsql AS \
            $$ BEGIN RAISE 'another record was read'; END $$; \
        CREATE POLICY refuse ON record USING (CASE WHEN key = '\\x01' THEN true ELSE refuse() END); \
        ALTER TABLE record ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    );
    assert!(follower.renew().unwrap());
    change(&releases.own, &key);
    assert!(follower.renew().unwrap());
    assert_eq!(content(&mut reading(&follower)).1[0].len(), 2);
    change(&releases.older, &key);
    assert!(follower.renew().is_err(), "each record is read");
}

#[test]
fn rows_of_changes_are_bounded_in_number_and_in_keys() {
    let Some(database) = Database::new() else { return };
    let releases = Releases::new(database);
    let rows = |what: &str| {
        let count = format!("SELECT count({what}) FROM record_change");
        releases.database.run(&count).unwrap()
    };
    put_many(&releases.own, TOO_MANY, 1);
    assert_eq!((rows("*"), rows("keys")), ("1".to_owned(), "0".to_owned()));
    put_many(&releases.own, TOO_MANY - 1, 2);
    assert_eq!((rows("*"), rows("keys")), ("2".to_owned(), "1".to_owned()));
    releases.database.run("UPDATE records SET version = 512");
    put_many(&releases.own, 1, 3);
    assert_eq!(rows("*"), "2", "the row of the first change is removed with that of change 513");
}

/// A verdict about a key is kept for as long as the mark stays.
#[test]
fn another_change_with_the_number_of_a_lost_change_has_another_mark() {
    let Some(database) = Database::new() else { return };
    let releases = Releases::new(database);
    let follower = Replica::new(releases.database.open(), "control", false);
    let marks = [1, 2].map(|value| {
        releases.make(&Step::PutBack(vec![vec![(0, 1, Some(value))]]));
        assert_eq!(content(&mut reading(&follower)).1[0], [(vec![1], vec![value])]);
        follower.mark().unwrap()
    });
    assert_eq!(marks[0].version, marks[1].version);
    assert_ne!(marks[0], marks[1]);
}

/// The older release made its tables and goes on beside this release.
#[test]
fn the_table_of_changes_is_made_where_an_older_release_made_the_installation() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let older = ClusterRecords::new(Arc::clone(&cluster), "control");
    change(&older, &[(0, 1, Some(1))]);
    database.run("DROP TABLE record_change");
    cluster.check("test", &[b"check"]).unwrap();
    let (own, follower) = (
        Replica::new(Arc::clone(&cluster), "control", false),
        Replica::new(database.open(), "control", true),
    );
    for (store, key) in [(&own as &dyn RecordStore, 2), (&older, 3), (&own, 4)] {
        change(store, &[(0, key, Some(1))]);
        follower.renew().unwrap();
        assert_eq!(content(&mut reading(&follower)), content(&mut reading(&older)));
    }
}
