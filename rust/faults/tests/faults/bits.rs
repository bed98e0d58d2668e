//! Damage: flipped bits in the files of a log, and removed files.

use std::collections::BTreeSet;

use super::disk::Fate;
use super::*;

const THREADS: usize = 2;

/// A flipped bit in the files of a log is found, or lies behind the acknowledged frames. After a
/// power cut, when no file shows which frames were durable, a flipped bit may cost the last batch.
#[test]
fn each_bit_of_a_log() {
    flips(if is_full() { 1 } else { 211 });
}

/// Work that leaves frames in several files.
const FRAMES: [Step; 6] =
    [Step::Fill, Step::Compact, Step::Write, Step::Fill, Step::Write, Step::Write];
/// Work that leaves a file with a head and no frames.
const NO_FRAMES: [Step; 3] = [Step::Fill, Step::Write, Step::Compact];

/// Returns a plane as a process leaves it at its end, and what the plane must show.
fn left(steps: &[Step]) -> (Image, Expected) {
    let root = scratch();
    let disk = calls::record(root.path(), Fault::None);
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(steps);
    let expected = client.expected(&Expected::default());
    drop(client);
    let (mut disk, tape) = (disk, calls::stop());
    tape.changes.iter().for_each(|change| disk.apply(change));
    let mut image = disk.cut_with(&Fate::Everything, &mut Dice::new(61));
    let shared = Path::new(PLANE).join(SHARED);
    let content = std::fs::read(root.path().join(&shared)).unwrap();
    image.insert(shared, Some(content.into()));
    (image, expected)
}

/// Flips each `stride`-th bit.
pub(crate) fn flips(stride: usize) {
    for steps in [&FRAMES[..], &NO_FRAMES] {
        flips_after(steps, stride);
    }
}

fn flips_after(steps: &[Step], stride: usize) {
    let (image, expected) = left(steps);
    let last = BTreeSet::from([expected.next_batch() - 1]);
    let without = less(&image, &Path::new(PLANE).join(SHARED));
    let log = Path::new(PLANE).join("log");
    let files = image.iter().filter(|(path, bytes)| path.starts_with(&log) && bytes.is_some());
    let files: Vec<_> = files.map(|(path, _)| path).collect();
    for path in &files {
        check(&less(&image, path), &expected, &BTreeSet::new());
        // No other file shows that the last file existed.
        if Some(path) != files.last() {
            check(&less(&without, path), &expected, &BTreeSet::new());
        }
    }
    let mut bits = Vec::new();
    for path in files {
        let bytes = image[path].as_ref().unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        bits.extend((0..8 * used).step_by(stride).map(|bit| (path, bit)));
    }
    std::thread::scope(|scope| {
        for part in bits.chunks(bits.len().div_ceil(THREADS)) {
            let (image, without, expected, last) = (&image, &without, &expected, &last);
            scope.spawn(move || {
                for (path, bit) in part {
                    check(&flipped(image, path, *bit), expected, &BTreeSet::new());
                    check(&flipped(without, path, *bit), expected, last);
                }
            });
        }
    });
    eprintln!("{} bits were flipped one by one, twice", bits.len());
}

fn less(image: &Image, path: &Path) -> Image {
    let mut image = image.clone();
    image.remove(path);
    image
}

fn flipped(image: &Image, path: &Path, bit: usize) -> Image {
    let mut image = image.clone();
    let bytes = image.get_mut(path).unwrap().as_mut().unwrap();
    std::sync::Arc::make_mut(bytes)[bit / 8] ^= 1 << (bit % 8);
    image
}

/// Asserts that an image is refused, or shows all batches except `may_be_lost`.
fn check(image: &Image, expected: &Expected, may_be_lost: &BTreeSet<u32>) {
    flaws::count_image();
    let root = scratch();
    disk::restore(image, root.path());
    match Client::open(&root.path().join(PLANE), 0) {
        Ok(mut client) => {
            let mut verdict = client.judge(expected);
            verdict.lost.retain(|batch| !may_be_lost.contains(batch));
            assert!(verdict.is_clean(), "{verdict:?}");
        }
        Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{error}"),
    }
}
