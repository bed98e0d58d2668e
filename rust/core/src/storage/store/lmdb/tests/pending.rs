//! Blocks that another process has appended but not synced.

use super::*;

#[test]
fn what_a_living_process_has_appended_waits_for_it_and_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let store = LmdbStore::create(directory.path()).unwrap();
    let mut other = Child::start("append", directory.path());
    let mut count = 0;
    for is_left in [false, true] {
        other.ask("begin");
        assert_eq!(store.head().unwrap(), count, "its process lives, and may sync it");
        if is_left {
            other.ask("leave");
        } else {
            // A sync of any process covers all processes.
            store.append(vec![block(vec![2])]).unwrap();
            count += 1;
        }
        count += 1;
        assert_eq!(store.head().unwrap(), count);
    }
    other.ask("begin");
    assert_eq!(store.head().unwrap(), count);
    other.kill();
    assert_eq!(store.head().unwrap(), count + 1, "a whole frame of a dead process");
    drop(store);
    assert_eq!(LmdbStore::open(directory.path()).unwrap().head().unwrap(), count + 1);
}
