//! The store on disk beside the one in memory, step by step.

use std::result::Result;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// Replaces the manifest of the generation before or of another, up to a position.
    Compact(bool, u64),
    Retain(u64),
    Segment(u8, Vec<u8>),
    RemoveSegment(u8),
    /// Appends names after the last page or after another.
    Names(bool, u32, Vec<FieldType>),
    Append(Vec<u8>),
    /// Appends some blocks one by one and then syncs them, or gives up on them.
    AppendUnsynced(u8, bool),
    Follow(u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![4 => Just(FieldType::Float), 1 => Just(FieldType::Bool), 1 => Just(FieldType::Text)];
    let names = (prop::bool::weighted(0.7), 0..5_u32, prop::collection::vec(kind, 0..4))
        .prop_map(|(is_last, series, fields)| Step::Names(is_last, series, fields));
    prop_oneof![
        3 => names,
        3 => prop::collection::vec(any::<u8>(), 0..9_000).prop_map(Step::Append),
        1 => (1..4_u8, any::<bool>()).prop_map(|(count, is_left)| Step::AppendUnsynced(count, is_left)),
        2 => (0..8_u64).prop_map(Step::Follow),
        1 => Just(Step::Reopen),
        2 => (any::<bool>(), 0..8_u64).prop_map(|(current, upto)| Step::Compact(current, upto)),
        1 => (0..9_u64).prop_map(Step::Retain),
        1 => (0..3_u8, prop::collection::vec(any::<u8>(), 1..99)).prop_map(|(id, bytes)| Step::Segment(id, bytes)),
        1 => (0..3_u8).prop_map(Step::RemoveSegment),
    ]
}

/// The state of both stores is one.
fn prop_are_alike(disk: &LmdbStore, twin: &MemoryStore) -> Result<(), TestCaseError> {
    prop_assert_eq!(disk.head().unwrap(), twin.head().unwrap());
    prop_assert_eq!(disk.counts().unwrap(), twin.counts().unwrap());
    for (after, generation) in [(0, 0), (2, 1), (u64::MAX, 3)] {
        let view = disk.view(after, generation).unwrap();
        prop_assert_eq!(view, twin.view(after, generation).unwrap());
    }
    for id in 0..3 {
        let read = |store: &dyn Store| store.read_segment(&[id; 16], 0, 1).ok();
        prop_assert_eq!(read(disk), read(twin));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn disk_and_twin_answer_alike(steps in prop::collection::vec(step(), 1..24)) {
        let directory = tempfile::tempdir().unwrap();
        let mut disk = LmdbStore::create(directory.path()).unwrap();
        let twin = MemoryStore::default();
        for step in steps {
            match step {
                Step::Names(is_last, series, fields) => {
                    let names = names(series, &fields);
                    let last = twin.names_after(0).unwrap().len() as u64;
                    let after = if is_last { last } else { last + 1 };
                    let first = disk.append_names(after, &names).unwrap();
                    prop_assert_eq!(first, twin.append_names(after, &names).unwrap());
                    prop_assert_eq!(first.is_some(), is_last);
                }
                Step::Append(sealed) => {
                    disk.append(vec![block(sealed.clone())]).unwrap();
                    twin.append(vec![block(sealed)]).unwrap();
                }
                Step::AppendUnsynced(count, is_left) => {
                    for store in [&disk as &dyn Store, &twin] {
                        let append = |at| store.append_unsynced(vec![block(vec![at; 9])]).unwrap();
                        let end = (0..count).map(append).last().unwrap();
                        if is_left { store.leave(end) } else { store.sync(end).unwrap() }
                    }
                }
                Step::Follow(after) => {
                    prop_assert_eq!(disk.log_after(after).unwrap(), twin.log_after(after).unwrap());
                    let pages = disk.names_after(after).unwrap();
                    prop_assert_eq!(pages, twin.names_after(after).unwrap());
                    let one = disk.log_get(&[after]).ok();
                    prop_assert_eq!(one, twin.log_get(&[after]).ok());
                }
                Step::Compact(is_current, upto) => {
                    let generation = disk.view(0, 0).unwrap().generation + u64::from(!is_current);
                    let manifest = [upto.to_le_bytes().as_slice(), b"manifest"].concat();
                    let replaced = disk.replace_manifest(generation, &manifest, upto).unwrap();
                    prop_assert_eq!(replaced, is_current);
                    let twins = twin.replace_manifest(generation, &manifest, upto).unwrap();
                    prop_assert_eq!(replaced, twins);
                }
                Step::Retain(seconds) => {
                    disk.set_retention(seconds).unwrap();
                    twin.set_retention(seconds).unwrap();
                }
                Step::Segment(id, bytes) => {
                    for store in [&disk as &dyn Store, &twin] {
                        if store.read_segment(&[id; 16], 0, 0).is_err() {
                            let mut new = store.create_segment(&[id; 16]).unwrap();
                            new.append(&bytes).unwrap();
                            new.finish().unwrap();
                        }
                    }
                }
                Step::RemoveSegment(id) => {
                    disk.remove_segment(&[id; 16]).unwrap();
                    twin.remove_segment(&[id; 16]).unwrap();
                }
                Step::Reopen => {
                    drop(disk);
                    disk = LmdbStore::open(directory.path()).unwrap();
                }
            }
            prop_are_alike(&disk, &twin)?;
        }
        prop_assert_eq!(whole_log(&disk), whole_log(&twin));
        prop_assert_eq!(disk.names_after(0).unwrap(), twin.names_after(0).unwrap());
    }
}
