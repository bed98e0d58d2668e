//! All sequences of a few operations, with a kill and with power cuts at each call of the last
//! operation.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::disk::Fate;
use super::*;

const OPERATIONS: [Step; 9] = [
    Step::Write,
    Step::Hold,
    Step::Wait,
    Step::Fill,
    Step::Flush,
    Step::Compact,
    Step::Delete,
    Step::Rekey,
    Step::Reopen,
];
const LENGTH_MAX: usize = 3;
/// One image in so many is worked on and verified. The other images are only read.
const WORKED_ON: usize = 8;
const THREADS: usize = 2;

/// Number of images that were looked at, and of images that were the same as an earlier image.
#[derive(Default)]
struct Looked {
    tally: Tally,
    same: usize,
    calls: usize,
}

/// A short history of any kind, on a new plane and on a used plane. The machine or the process
/// stops at any call of the last step.
#[test]
fn all_sequences() {
    let sequences = sequences();
    let stride = if is_full() { 1 } else { 97 };
    let bases =
        [base(&[Step::Write]), base(&[Step::Write, Step::Compact, Step::Write, Step::Fill])];
    let work = |thread: usize| {
        let mut looked = Looked::default();
        let mut dice = Dice::new(41 + thread as u64);
        for number in (thread..2 * sequences.len()).step_by(stride * THREADS) {
            look_at(&bases[number % 2], &sequences[number / 2], &mut dice, &mut looked);
        }
        looked
    };
    let looked = std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| scope.spawn(move || work(thread)));
        threads.map(|thread| thread.join().unwrap())
    });
    let mut all = Looked::default();
    for looked in looked {
        all.tally += looked.tally;
        all.same += looked.same;
        all.calls += looked.calls;
    }
    let count = sequences.len().div_ceil(stride);
    eprintln!(
        "{count} of {} sequences of up to {LENGTH_MAX} operations, twice, {} calls: {:?}, and {} \
         that were the same as others",
        sequences.len(),
        all.calls,
        all.tally,
        all.same
    );
}

fn sequences() -> Vec<Vec<Step>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..LENGTH_MAX {
        let longer = |steps: &Vec<Step>| {
            let longer = |step: &Step| [steps.as_slice(), &[*step]].concat();
            OPERATIONS.iter().map(longer).collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all.split_off(1)
}

/// Returns a plane on which these steps were done, and what it must show.
fn base(steps: &[Step]) -> (Image, Expected) {
    let (record, client, _root) = perform(steps, Fault::None);
    let mut disk = record.disk.clone();
    record.tape.changes.iter().for_each(|change| disk.apply(change));
    let image = disk.cut_with(&Fate::Everything, &mut Dice::new(40));
    (image, client.expected(&Expected::default()))
}

fn look_at(
    (image, before): &(Image, Expected),
    steps: &[Step],
    dice: &mut Dice,
    looked: &mut Looked,
) {
    let root = scratch();
    disk::restore(image, root.path());
    let directory = root.path().join(PLANE);
    let disk = calls::record(root.path(), Fault::None);
    calls::handle().unwrap().keep_shared(&directory.join(SHARED));
    let mut client = Client::open(&directory, before.next_batch()).unwrap();
    let (last, first) = steps.split_last().unwrap();
    client.work(first);
    let start = calls::position();
    client.work(&[*last]);
    let tape = calls::stop();
    assert_eq!(client.faults, [""; 0], "{steps:?}");
    let (events, before) = (client.events, before.clone());
    let record = Record { disk, tape, events, before };
    let mut seen = HashSet::new();
    record.each_moment(start, dice, |image, expected, dice| {
        let mut hasher = DefaultHasher::new();
        (&image, &expected).hash(&mut hasher);
        if !seen.insert(hasher.finish()) {
            looked.same += 1;
            return;
        }
        let number = usize::try_from(looked.tally.images).unwrap();
        let tally = if number.is_multiple_of(WORKED_ON) {
            recover(&image, &expected, 0, dice)
        } else {
            look(&image, &expected)
        };
        looked.tally += tally;
        assert!(looked.tally.is_clean(), "{steps:?}: {:?}", looked.tally);
    });
    looked.calls += record.tape.changes.len() - start;
}

impl Record {
    /// Hands over images of all moments from a position on: the images that a kill leaves, and the
    /// images that power cuts leave.
    fn each_moment(
        &self,
        start: usize,
        dice: &mut Dice,
        mut visit: impl FnMut(Image, Expected, &mut Dice),
    ) {
        let mut disk = self.disk.clone();
        for moment in 0..=self.tape.changes.len() {
            if moment >= start {
                let expected = expected_at(&self.before, &self.events, moment);
                visit(self.killed(&disk, moment, dice), expected.clone(), dice);
                for fate in disk.fates(dice) {
                    visit(disk.cut_with(&fate, dice), expected.clone(), dice);
                }
            }
            if let Some(change) = self.tape.changes.get(moment) {
                disk.apply(change);
            }
        }
    }

    /// Returns the files that a process leaves if it is killed after so many changes.
    fn killed(&self, disk: &Disk, moment: usize, dice: &mut Dice) -> Image {
        let mut image = disk.cut_with(&Fate::Everything, dice);
        let shared = self.tape.shared.iter().rfind(|(position, _)| *position <= moment);
        if let Some((_, content)) = shared {
            image.insert(Path::new(PLANE).join(SHARED), Some(content.clone().into()));
        }
        image
    }
}
