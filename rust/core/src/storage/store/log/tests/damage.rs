//! Damage is found, unless it affects no acknowledged block.

use super::*;

/// Writes some frames, over two files.
fn filled(plane: &Path) -> Vec<Vec<u8>> {
    let log = create(plane);
    for number in 0..4 {
        append(&log, &[number; 40]);
    }
    log.restart(4).unwrap();
    for number in 4..8 {
        append(&log, &[number; 40]);
    }
    sealed(&log)
}

/// Flips each `stride`-th bit of the files of a log, one at a time, and calls `visit`. Example: a
/// stride of 8 flips the lowest bit of each byte.
fn each_bit_flipped(plane: &Path, stride: usize, mut visit: impl FnMut(&Path, usize)) {
    for (base, bytes) in file::list(&plane.join(DIRECTORY)).unwrap() {
        let path = file::path_of(&plane.join(DIRECTORY), base);
        let whole = std::fs::read(&path).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert!(used <= usize::try_from(bytes).unwrap());
        for bit in (0..8 * used).step_by(stride) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            visit(&path, bit / 8);
        }
        std::fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn each_flipped_bit_of_a_log_that_was_synced_is_found() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let is_full = std::env::var_os("FAULTS").is_some_and(|length| length == "full");
    each_bit_flipped(directory.path(), if is_full { 1 } else { 17 }, |path, at| {
        let opened = open(directory.path());
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{} byte {at}", path.display());
    });
}

/// After a power cut no frame shows that the last frame was durable. Every earlier frame has a
/// later frame that shows it.
#[test]
fn without_a_witness_damage_costs_the_last_frame_at_most() {
    let directory = tempfile::tempdir().unwrap();
    let whole = filled(directory.path());
    let memory = Path::new("/dev/shm");
    let image = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let image = image.unwrap();
    each_bit_flipped(directory.path(), 17, |_, _| {
        let plane = image.path().join("plane");
        drop(std::fs::remove_dir_all(&plane));
        std::fs::create_dir_all(plane.join(DIRECTORY)).unwrap();
        for entry in
            directory.path().join(DIRECTORY).read_dir().unwrap().map(|entry| entry.unwrap())
        {
            std::fs::copy(entry.path(), plane.join(DIRECTORY).join(entry.file_name())).unwrap();
        }
        match open(&plane) {
            Ok(log) => assert_eq!(sealed(&log), whole[..7]),
            Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
        }
    });
}

#[test]
fn a_log_cut_short_under_an_open_handle_is_damaged_until_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let log = create(directory.path());
    (0..4).for_each(|number| append(&log, &[number; 3_000]));
    let path = newest_file(directory.path());
    let whole = std::fs::read(&path).unwrap();
    for length in (0..12_000).step_by(500) {
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        assert!(matches!(read(&log), Err(Error::Corrupt { .. })), "{length} bytes");
        File::options().write(true).open(&path).unwrap().write_all_at(&whole, 0).unwrap();
        assert_eq!(read(&log).unwrap().len(), 4);
        // The next read begins at the beginning again.
        *log.index() = LogIndex::new(&log.files).unwrap();
    }
}

#[test]
fn a_log_that_ends_before_what_was_compacted_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let whole = filled(directory.path());
    let taken = |compacted| CompactedLog { compacted, cursors: 0 };
    assert!(open_taken(directory.path(), taken(whole.len() as u64)).is_ok());
    let opened = open_taken(directory.path(), taken(1 + whole.len() as u64));
    assert!(matches!(opened, Err(Error::Corrupt { .. })));
}

#[test]
fn a_lock_file_of_an_earlier_boot_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let whole = filled(directory.path());
    let path = directory.path().join(LOCK_FILE);
    let earlier = std::fs::read(&path).unwrap();
    let noise: Vec<u8> =
        (0..4_096_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    for content in [vec![0; 4_096], vec![0xa5; 4_096], noise, earlier[..100].to_vec(), Vec::new()] {
        std::fs::write(&path, content).unwrap();
        let log = open(directory.path()).unwrap();
        assert_eq!(sealed(&log), whole);
        drop(log);
    }
    // The shared state is of an earlier time than the log, so the position known to be durable is
    // missing.
    std::fs::write(&path, earlier).unwrap();
    let file = newest_file(directory.path());
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, &content[..600]).unwrap();
    assert!(matches!(open(directory.path()), Err(Error::Corrupt { .. })));
}

#[test]
fn a_file_that_is_gone_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    for (base, _) in file::list(&directory.path().join(DIRECTORY)).unwrap() {
        let path = file::path_of(&directory.path().join(DIRECTORY), base);
        let away = directory.path().join("away");
        std::fs::rename(&path, &away).unwrap();
        assert!(matches!(open(directory.path()), Err(Error::Corrupt { .. })), "{base}");
        std::fs::rename(&away, &path).unwrap();
    }
    open(directory.path()).unwrap();
}
