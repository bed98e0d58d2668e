//! Planes that are closed: for room, after a while, after a failure or for good.

use std::fs;

use super::*;

#[test]
fn those_used_last_stay_open() {
    let house = House::new(5, 3);
    for number in 0..5 {
        house.open(&format!("a{number}"));
    }
    assert_eq!(house.opened(), ["a2", "a3", "a4"]);
    house.open("a2");
    house.open("a0");
    assert_eq!(house.opened(), ["a0", "a2", "a4"]);
}

#[test]
fn a_plane_in_use_is_not_closed_for_room() {
    let house = House::new(6, 1);
    let held = house.open("a0");
    let called = house.open("a1").for_a_call().unwrap();
    write(&house.open("a2"), Acknowledgement::Buffered { bytes_max: 1 << 20 });
    for number in 3..6 {
        house.open(&format!("a{number}"));
    }
    assert_eq!(house.opened(), ["a0", "a1", "a2", "a5"]);
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1", "a2", "a5"], "too many, but not these");
    drop((held, called));
    let ((account_id, waiting, bytes),) = one(house.open.waiting());
    assert_eq!((account_id.as_str(), bytes > 0), ("a2", true));
    house.open.flush(&account_id, &waiting).unwrap();
    drop(waiting);
    assert!(house.open.waiting().is_empty());
    house.close_unused();
    assert_eq!(house.opened(), ["a5"], "nobody uses them any more");
    assert_eq!(house.rows("a2"), 1);
}

fn one<T>(all: Vec<T>) -> (T,) {
    assert_eq!(all.len(), 1);
    (all.into_iter().next().unwrap(),)
}

#[test]
fn idle_planes_are_closed() {
    let house = House::new(3, 8);
    let held = house.open("a0");
    for account_id in ["a1", "a2"] {
        house.open(account_id);
    }
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1", "a2"]);
    house.age("a0");
    house.age("a1");
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a2"]);
    house.age("a0");
    house.open("a0");
    drop(held);
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a2"], "it was used again");
}

#[test]
fn a_deleted_plane_is_closed_under_whoever_holds_it() {
    let house = House::new(2, 8);
    let (deleted, _) = (house.open("a0"), house.open("a1"));
    house.counted.destroy("a0").unwrap();
    house.close_unused();
    assert!(is_closed(&deleted));
    assert_eq!(house.opened(), ["a1"]);
    assert!(matches!(house.fault("a0"), Error::Missing(_)));
}

#[test]
fn a_plane_deleted_from_a_database_is_closed_once_that_is_known() {
    let house = House::of_a_database(2);
    let (deleted, _) = (house.open("a0"), house.open("a1"));
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1"]);
    house.open.close_unused(|| Some(HashSet::from(["a1".to_owned()])));
    assert!(is_closed(&deleted));
    assert_eq!(house.opened(), ["a1"]);
}

#[test]
fn a_plane_of_an_account_that_was_made_just_now_is_not_taken_for_a_deleted_one() {
    let house = House::of_a_database(2);
    house.open("a0");
    house.open.close_unused(|| {
        let known = HashSet::from(["a0".to_owned()]);
        house.open("a1"); // after the accounts were read
        Some(known)
    });
    assert_eq!(house.opened(), ["a0", "a1"]);
}

#[test]
fn only_the_plane_that_failed_is_released() {
    let house = House::new(1, 8);
    let failed = house.open("a0");
    house.open.release("a0", Some(&failed)).unwrap();
    assert!(is_closed(&failed));
    assert!(house.open.all().is_empty());
    let opened = house.open("a0");
    house.open.release("a0", Some(&failed)).unwrap();
    assert!(Arc::ptr_eq(&opened, &house.open("a0")));
    house.open.release("unknown", None).unwrap();
}

#[test]
fn what_waits_is_stored_before_a_plane_is_closed() {
    let house = House::new(2, 8);
    for account_id in ["a0", "a1"] {
        write(&house.open(account_id), Acknowledgement::Buffered { bytes_max: 1 << 20 });
    }
    house.open.release("a0", None).unwrap();
    assert!(house.open.close().is_empty());
    assert!(house.open.all().is_empty());
    assert_eq!((house.rows("a0"), house.rows("a1")), (1, 1));
}

#[test]
fn a_flush_of_a_plane_that_was_closed_releases_no_other() {
    let house = House::new(1, 8);
    let closed = house.open("a0");
    house.open.release("a0", None).unwrap();
    let opened = house.open("a0");
    assert!(matches!(house.open.flush("a0", &closed), Err(Error::Closed)));
    assert!(!is_closed(&opened));
    opened.close();
    assert!(matches!(house.open.flush("a0", &opened), Err(Error::Closed)));
    assert!(house.open.all().is_empty(), "one that fails is opened anew");
}

#[test]
fn threads_that_need_more_planes_than_may_be_open_disturb_nobody() {
    const ACCOUNTS: usize = 8;
    let house = House::new(ACCOUNTS, 3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..25 * ACCOUNTS {
                    write(&house.open(&format!("a{}", round % ACCOUNTS)), Acknowledgement::Durable);
                }
            });
        }
        scope.spawn(|| (0..100).for_each(|_| house.close_unused()));
    });
    for number in 0..ACCOUNTS {
        assert_eq!(house.rows(&format!("a{number}")), 75);
    }
}

#[test]
fn a_destroyed_key_does_not_come_back() {
    let house = House::new(1, 8);
    let key = house.counted.wrapped_key("a0").unwrap();
    house.counted.destroy("a0").unwrap();
    assert!(matches!(house.counted.replace_key("a0", &key, &key), Err(Error::Missing(_))));
    fs::create_dir(house.folder("a0")).unwrap(); // as if a file could not be removed
    assert!(matches!(house.counted.replace_key("a0", &key, &key), Err(Error::Missing(_))));
    assert!(!house.folder("a0").join("key").exists());
}
