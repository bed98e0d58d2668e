//! Writers that are killed at any instant, while other processes write and read.

use super::*;

/// Appends blocks of this process as long as it lives, and reports each.
pub(super) fn pour(store: &LmdbStore) -> String {
    for number in 0_u32.. {
        let sealed = [std::process::id().to_le_bytes(), number.to_le_bytes()].concat();
        store.append(vec![block(sealed)]).unwrap();
        Child::answer(&format!("{} {number}", std::process::id()));
    }
    "never".to_owned()
}

/// Returns the numbers of the blocks that the store has from a process.
fn blocks_of(store: &LmdbStore, process: u32) -> Vec<u32> {
    let log = whole_log(store).into_iter().map(|entry| entry.sealed);
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let of_process = log.filter(|sealed| number(&sealed[..4]) == process);
    of_process.map(|sealed| number(&sealed[4..])).collect()
}

/// Returns process and number of an acknowledged block.
fn acknowledged(answer: &str) -> (u32, u32) {
    let (process, number) = answer.split_once(' ').unwrap();
    (process.parse().unwrap(), number.parse().unwrap())
}

#[test]
fn what_a_killed_writer_has_acknowledged_is_there_and_the_rest_at_once_or_never() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = LmdbStore::create(directory.path()).unwrap();
    let mut found = Vec::new();
    for round in 0..8 {
        let mut writers = [(); 2].map(|()| Child::start("pour", directory.path()));
        let mut last = writers.each_mut().map(|writer| acknowledged(&writer.ask("pour")));
        for mut writer in writers {
            for _ in 0..5 * round {
                last[0] = acknowledged(&writer.next_answer());
            }
            writer.kill();
            let (process, number) = last[0];
            last.swap(0, 1);
            let blocks = blocks_of(&store, process);
            assert!(blocks.len() > usize::try_from(number).unwrap());
            assert!(blocks.iter().copied().eq(0..u32::try_from(blocks.len()).unwrap()));
            found.push((process, blocks.len()));
        }
        if round % 2 == 1 {
            drop(store);
            store = LmdbStore::open(directory.path()).unwrap();
        }
        store.append(vec![block(vec![0; 8])]).unwrap();
        for (process, count) in &found {
            assert_eq!(blocks_of(&store, *process).len(), *count, "round {round}");
        }
    }
    drop(store);
    assert_eq!(LmdbStore::open(directory.path()).unwrap().verify().unwrap(), [""; 0]);
}
