//! Power cuts inside `fleetcast master-key rotate`. After each of them an operator looks at the
//! installation, and ends the turn (`tests/cli/after_cut.py`).

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::disk::{Fate, read};
use super::traced::{can_trace, trace};
use super::*;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const HANDOVER: &str = "data/master-key.handover";
/// Images of each moment that may have torn writes.
const TORN_EACH: usize = 4;
/// One image in so many is looked at, if not all are.
const LOOKED_AT: usize = 12;
/// One image in so many is cut again while its turn goes on.
const CUT_AGAIN: usize = 20;

/// A turn of the master key goes on after a power cut at any moment. Everything can be read before
/// and after it, and the old key opens nothing once the command has answered.
#[test]
fn turns_of_the_master_key() {
    if !can_trace() || !python().exists() {
        eprintln!("left out: it takes strace, and the environment that make builds");
        return;
    }
    for new_key in [None, Some("next.key")] {
        let mut turning = Turning::start(new_key);
        let turn = turning.turn(Disk::of(&read(turning.root.path())));
        turning.cut(&turn, if is_full() { 1 } else { LOOKED_AT }, is_full());
        turning.kill(&turn);
        let (looked_at, wrong) = (turning.verdicts.len(), turning.wrong.len());
        eprintln!("turns of the master key: {looked_at} images, {wrong} wrong");
        assert!(looked_at > 0 && wrong == 0, "{:#?}", turning.wrong);
        // Without the last step of a turn, the next run makes all names durable once more.
        if is_full() && new_key.is_none() {
            turning.omit(&turn);
        }
    }
}

/// The disk before a turn, and the changes that the turn made.
type Turn = (Disk, Vec<Change>);

struct Turning {
    root: TempDir,
    /// The new key's own file, if it has one.
    new_key: Option<&'static str>,
    operator: Operator,
    dice: Dice,
    /// True for images that are wrong, by hash and question.
    verdicts: HashMap<u64, bool>,
    wrong: Vec<String>,
}

impl Turning {
    fn start(new_key: Option<&'static str>) -> Self {
        let root = scratch();
        let mut operator = Operator::of(root.path(), new_key);
        assert_eq!(operator.ask("make"), "ok");
        let (verdicts, wrong) = Default::default();
        Self { root, new_key, operator, dice: Dice::new(51), verdicts, wrong }
    }

    /// Runs a turn on the present files of a disk.
    fn turn(&self, before: Disk) -> Turn {
        let mut rotate = Command::new(python());
        rotate.args(["-m", "fleetcast", "master-key", "rotate"]);
        let data = self.root.path().join("data");
        rotate.args(self.new_key.map(|name| format!("--to={}", data.join(name).display())));
        rotate.env("FLEETCAST_DATA", data);
        let changes = trace(self.root.path(), &before, &rotate);
        (before, changes)
    }

    /// Cuts the power at each moment of a turn, and looks at one image in `stride`.
    fn cut(&mut self, (before, changes): &Turn, stride: usize, again: bool) {
        let (mut disk, mut number) = (before.clone(), 0_usize);
        for moment in 0..=changes.len() {
            let is_answered = moment == changes.len();
            let torn = (0..TORN_EACH).map(|_| disk.cut(&mut self.dice)).collect::<Vec<_>>();
            for image in self.sets(&disk).into_iter().chain(torn) {
                number += 1;
                if is_answered || number.is_multiple_of(stride) {
                    self.is_wrong(&image, is_answered);
                }
                if again && number.is_multiple_of(CUT_AGAIN) {
                    self.put(&image);
                    let turn = self.turn(Disk::of(&image));
                    self.cut(&turn, LOOKED_AT, false);
                }
            }
            changes.get(moment).iter().for_each(|change| disk.apply(change));
        }
    }

    /// Kills a turn before each sync of names, and cuts the power while the next run ends the turn.
    /// What the killed run did not sync is still not durable then. Without a handover the next run
    /// would begin another turn.
    fn kill(&mut self, (before, changes): &Turn) {
        let mut disk = before.clone();
        for change in changes {
            if let Change::Sync { node, .. } = change
                && disk.is_directory(*node)
                && disk.is_unsynced(*node)
                && disk.present().contains_key(Path::new(HANDOVER))
            {
                self.put(&disk.cut_with(&Fate::Everything, &mut Dice::new(0)));
                let turn = self.turn(disk.clone());
                self.cut(&turn, LOOKED_AT, false);
            }
            disk.apply(change);
        }
    }

    /// Leaves out each sync of a turn that made a change durable. An operator must find a fault,
    /// unless a later sync of the same file or directory repeats it.
    fn omit(&mut self, (before, changes): &Turn) {
        let mut disk = before.clone();
        for (at, change) in changes.iter().enumerate() {
            if let Change::Sync { node, .. } = change
                && disk.is_unsynced(*node)
            {
                let mut changes = changes.clone();
                changes[at] = Change::Nothing;
                let mut later = changes[at..].iter();
                let is_repeated =
                    later.any(|later| matches!(later, Change::Sync { node: of, .. } if of == node));
                let is_found = self.finds(before, &changes);
                eprintln!("sync {at} left out: found {is_found}, repeated {is_repeated}");
                assert!(is_found || is_repeated);
            }
            disk.apply(change);
        }
    }

    /// Returns true if a power cut during these changes leaves a wrong image.
    fn finds(&mut self, before: &Disk, changes: &[Change]) -> bool {
        let mut disk = before.clone();
        (0..=changes.len()).any(|moment| {
            let is_answered = moment == changes.len();
            let is_found = self.sets(&disk).iter().any(|image| self.is_wrong(image, is_answered));
            changes.get(moment).iter().for_each(|change| disk.apply(change));
            is_found
        })
    }

    /// Returns images of a cut now, with any set of the changes that are not durable.
    fn sets(&mut self, disk: &Disk) -> Vec<Image> {
        let fates = disk.fates(&mut self.dice);
        fates.iter().map(|fate| disk.cut_with(fate, &mut self.dice)).collect()
    }

    /// Returns true if an operator finds a fault in an image.
    fn is_wrong(&mut self, image: &Image, is_answered: bool) -> bool {
        let mut hasher = DefaultHasher::new();
        (image, is_answered).hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(is_wrong) = self.verdicts.get(&hash) {
            return *is_wrong;
        }
        self.put(image);
        let answer = self.operator.ask(if is_answered { "answered" } else { "look" });
        let is_wrong = answer != "ok";
        self.verdicts.insert(hash, is_wrong);
        if is_wrong {
            self.wrong.push(answer);
        }
        is_wrong
    }

    fn put(&self, image: &Image) {
        for entry in self.root.path().read_dir().unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        disk::restore(image, self.root.path());
    }
}

/// A process that answers questions about the installation in a folder.
struct Operator {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Operator {
    fn of(root: &Path, new_key: Option<&str>) -> Self {
        let mut program = Command::new(python());
        program.args(["-m", "tests.cli.after_cut"]).arg(root).args(new_key);
        program.current_dir(REPOSITORY).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = program.stderr(Stdio::null()).spawn().unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers }
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.questions, "{question}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn python() -> PathBuf {
    Path::new(REPOSITORY).join(".venv/bin/python")
}
