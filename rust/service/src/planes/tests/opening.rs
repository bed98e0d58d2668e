//! Planes that are opened, and opened again after their files changed.

use std::fs::{self, File};

use super::*;

const NEW_KEY: [u8; 32] = [8; 32];

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Wraps the data key of a plane under the master key `NEW_KEY`, as another process does.
fn rewrap(house: &House, account_id: &str) {
    let both = || Some(vec![MasterKey::new(NEW_KEY), MasterKey::new(KEY)]);
    let keys = MasterKeys::following(&NEW_KEY, Box::new(both));
    assert!(Plane::rewrap(&*house.counted, account_id, &keys).unwrap());
}

#[test]
fn a_plane_is_opened_once_while_it_grows() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    let file = File::options().write(true).open(house.folder("a0").join("plane.mdb")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length + 4096).unwrap();
    assert!(Arc::ptr_eq(&plane, &house.open("a0")));
    assert_eq!(house.openings(), 1);
    // The file was seen at its greater length: a shorter file was cut.
    file.set_len(length).unwrap();
    assert!(!Arc::ptr_eq(&plane, &house.open("a0")));
    assert!(is_closed(&plane));
}

#[test]
fn missing_files_release_the_plane_until_they_are_back() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    write(&plane, Acknowledgement::Durable);
    fs::rename(house.folder("a0"), house.folder("away")).unwrap();
    for _ in 0..2 {
        assert!(matches!(house.fault("a0"), Error::Missing(_)));
        assert!(is_closed(&plane));
        assert!(house.open.all().is_empty());
    }
    fs::rename(house.folder("away"), house.folder("a0")).unwrap();
    assert_eq!(house.rows("a0"), 1);
}

#[test]
fn what_was_never_there_leaves_nothing_behind() {
    for house in [House::new(0, 8), House::of_a_database(0)] {
        assert!(matches!(house.fault("a0"), Error::Missing(_)));
        assert!(house.open.all().is_empty());
    }
}

#[test]
fn a_copy_put_in_its_place_is_opened_instead() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    write(&plane, Acknowledgement::Durable);
    copy(&house.folder("a0"), &house.folder("copy"));
    write(&plane, Acknowledgement::Durable);
    fs::remove_dir_all(house.folder("a0")).unwrap();
    fs::rename(house.folder("copy"), house.folder("a0")).unwrap();
    assert_eq!(house.rows("a0"), 1);
    assert!(is_closed(&plane));
    let plane = house.open("a0");
    let (path, new) = (house.folder("a0").join("plane.mdb"), house.folder("a0").join("new"));
    fs::copy(&path, &new).unwrap();
    fs::rename(new, path).unwrap();
    assert_eq!(house.rows("a0"), 1);
    assert!(is_closed(&plane), "one file is enough");
}

#[test]
fn another_key_is_another_plane() {
    let house = House::new(2, 8);
    let plane = house.open("a0");
    fs::copy(house.folder("a1").join("key"), house.folder("a0").join("key")).unwrap();
    assert!(matches!(house.fault("a0"), Error::Corrupt { .. } | Error::Foreign { .. }));
    assert!(is_closed(&plane));
}

#[test]
fn a_plane_stays_open_while_its_key_is_wrapped_again() {
    let known = || Some([[8; 32], KEY].map(MasterKey::new).to_vec());
    let keys = MasterKeys::following(&KEY, Box::new(known));
    let house = House::made(1, |counted, folder| {
        OpenPlanes::in_folder(counted, folder, keys.clone(), 8, IDLE)
    });
    let plane = house.open("a0");
    keys.renew();
    assert!(Plane::rewrap(&*house.counted, "a0", &keys).unwrap());
    assert!(!Plane::rewrap(&*house.counted, "a0", &keys).unwrap());
    assert!(Arc::ptr_eq(&plane, &house.open("a0")));
    assert_eq!(house.openings(), 1);
    house.open.release("a0", None).unwrap();
    house.open("a0");
    house.open.release("a0", None).unwrap();
    assert!(Plane::open(&*house.counted, "a0", &KEY, "acme").is_err());
}

/// Master keys of a source that counts how often it is asked. It answers `answer`.
fn counted_keys(answer: &Arc<Mutex<Option<[u8; 32]>>>) -> (MasterKeys, Arc<AtomicUsize>) {
    let (asked, answer) = (Arc::new(AtomicUsize::new(0)), answer.clone());
    let count = asked.clone();
    let source = move || {
        count.fetch_add(1, Ordering::SeqCst);
        answer.lock().unwrap().map(|key| vec![MasterKey::new(key)])
    };
    (MasterKeys::following(&KEY, Box::new(source)), asked)
}

#[test]
fn a_damaged_key_file_asks_for_the_master_keys_once_and_a_turn_is_followed() {
    let answer = Arc::new(Mutex::new(Some(KEY)));
    let (keys, asked) = counted_keys(&answer);
    let house =
        House::made(2, |counted, folder| OpenPlanes::in_folder(counted, folder, keys, 8, IDLE));
    house.open("a0");
    house.open("a1");
    let begun = Instant::now();
    fs::write(house.folder("a0").join("key"), b"nonsense").unwrap();
    for _ in 0..5 {
        house.fault("a0");
        house.open.release("a0", None).unwrap();
        house.age("a0");
        house.close_unused(); // the slot, with its damage, is gone
    }
    let asked_max = 1 + begun.elapsed().as_secs() / 60;
    assert!(asked.load(Ordering::SeqCst) as u64 <= asked_max);
    *answer.lock().unwrap() = Some(NEW_KEY);
    rewrap(&house, "a1");
    assert_eq!(house.rows("a1"), 0);
    house.fault("a0");
}

#[test]
fn a_source_that_failed_is_asked_again_and_its_key_opens_the_plane() {
    let answer = Arc::new(Mutex::new(None));
    let (keys, _) = counted_keys(&answer);
    let house = House::made(1, |counted, folder| {
        OpenPlanes::in_folder(counted, folder, keys.clone(), 8, IDLE)
    });
    rewrap(&house, "a0");
    assert!(matches!(house.fault("a0"), Error::Corrupt { .. }));
    *answer.lock().unwrap() = Some(NEW_KEY);
    keys.renew(); // for the accounts, which every request reads first
    house.open("a0");
}

#[test]
fn a_damaged_plane_is_opened_again_only_when_its_files_change() {
    let house = House::new(1, 8);
    write(&house.open("a0"), Acknowledgement::Durable);
    house.open.release("a0", None).unwrap();
    let path = house.folder("a0").join("plane.mdb");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, vec![0; whole.len()]).unwrap();
    let first = house.fault("a0").to_string();
    assert_eq!([(); 2].map(|()| house.fault("a0").to_string()), [first.clone(), first]);
    assert_eq!(house.openings(), 2, "it was tried once");
    fs::write(house.folder("a0").join("log").join("other"), "x").unwrap();
    house.fault("a0");
    assert_eq!(house.openings(), 3, "the log has changed");
    fs::remove_file(house.folder("a0").join("log").join("other")).unwrap();
    fs::write(&path, whole).unwrap();
    assert_eq!(house.rows("a0"), 1);
}

#[test]
fn a_damaged_plane_in_a_database_is_left_alone_for_a_while() {
    let house = House::of_a_database(1);
    let path = house.folder("a0").join("plane.mdb");
    fs::write(&path, vec![0; fs::read(&path).unwrap().len()]).unwrap();
    for _ in 0..3 {
        assert!(matches!(house.fault("a0"), Error::Corrupt { .. } | Error::Foreign { .. }));
        house.open.release("a0", None).unwrap();
    }
    assert_eq!(house.openings(), 1);
    house.open.slot("a0").unwrap().turn().damage.as_mut().unwrap().seen =
        slot::PlaneState::At(Instant::now().checked_sub(Duration::from_secs(10)).unwrap());
    house.fault("a0");
    assert_eq!(house.openings(), 2);
}

#[test]
fn files_of_a_database_are_not_looked_at() {
    let house = House::of_a_database(1);
    let plane = house.open("a0");
    fs::remove_dir_all(house.folder("a0")).unwrap();
    assert!(Arc::ptr_eq(&plane, &house.open("a0")));
}

#[test]
fn a_slow_opening_stops_nobody_else() {
    let house = House::new(2, 1);
    Plane::create(&*house.counted, "slow", &KEY).unwrap();
    thread::scope(|scope| {
        let slow = scope.spawn(|| house.open("slow"));
        until(&house.counted.slow_has_begun);
        let late = scope.spawn(|| house.open("slow"));
        house.open("a0");
        house.open("a1");
        house.age("slow");
        house.close_unused();
        assert_eq!(house.opened(), ["a1"]);
        assert!(house.open.waiting().is_empty());
        house.counted.slow_may_end.store(true, Ordering::SeqCst);
        assert!(Arc::ptr_eq(&slow.join().unwrap(), &late.join().unwrap()));
    });
    assert_eq!(house.openings(), 3, "one for both who asked for it");
}
