//! Three processes that write, and are killed at any instant.

use std::io::{BufRead, BufReader, Lines, stdin};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::*;

const WRITERS: u32 = 3;
/// Number of batches that a writer writes. It then waits to be killed.
const BATCHES: u32 = 60;
/// Number of rounds on one plane.
const ROUNDS: u32 = 20;
const DIRECTORY: &str = "FLEETCAST_TEST_WRITER_DIRECTORY";
const FIRST: &str = "FLEETCAST_TEST_WRITER_FIRST";

struct Writer {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
    first: u32,
    acknowledged: u32,
}

/// Batches that any of the writers has acknowledged exist. Other batches exist at once or never.
#[test]
fn three_writers_that_are_killed() {
    let rounds = if is_full() { 200 } else { 4 };
    let mut dice = Dice::new(51);
    let (mut tally, mut verified) = (Tally::default(), 0);
    for first in (0..rounds).step_by(ROUNDS as usize) {
        let root = scratch();
        let directory = root.path().join(PLANE);
        let mut client = Client::create(&directory);
        for round in 0..ROUNDS.min(rounds - first) {
            // In every other round, this process has the plane open.
            client.work(if round % 2 == 0 { &[Step::Reopen] } else { &[] });
            let numbers = (0..WRITERS).map(|writer| (round * WRITERS + writer) * BATCHES);
            let mut writers: Vec<_> = numbers.map(|first| Writer::start(&root, first)).collect();
            for writer in &mut writers {
                for _ in 0..=dice.below(20) {
                    writer.next_answer();
                }
            }
            for writer in writers {
                writer.kill(&mut client);
            }
            let expected = client.expected(&Expected::default());
            let verdict = client.judge(&expected);
            tally.note(&verdict);
            tally.images += 1;
            tally.acknowledged += expected.acknowledged() as u64;
            client.settle(&verdict.shown);
            let steps: &[Step] =
                if round % 3 == 0 { &[Step::Compact] } else { &[Step::Reopen, Step::Compact] };
            client.work(&steps[..usize::try_from(round % 4).unwrap().min(steps.len())]);
            tally.note(&client.judge(&client.expected(&Expected::default())));
            flaws::count_image();
            tally.assert_clean();
        }
        client.work(&[Step::Reopen]);
        let (planes, plane) = DirectoryPlanes::of_plane(&directory).unwrap();
        let found = Plane::verify(&planes, plane, &MASTER_KEY).unwrap();
        assert_eq!(found.damages, [""; 0]);
        verified += found.rows;
    }
    eprintln!(
        "{rounds} rounds of kill -9 with {WRITERS} writers: {tally:?}, {verified} rows verified"
    );
}

impl Writer {
    fn start(root: &TempDir, first: u32) -> Self {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "killed::pour", "--ignored", "--nocapture"]);
        program.env(DIRECTORY, root.path()).env(FIRST, first.to_string());
        let mut process = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, answers, first, acknowledged: 0 }
    }

    fn next_answer(&mut self) -> bool {
        let mut answers = self.answers.by_ref().map_while(Result::ok);
        // On a machine with one core, the name of the test is on the same line as the first answer.
        let is_answer = |line: &String| line.contains("acknowledged ");
        let answer = answers.find(is_answer);
        self.acknowledged += u32::from(answer.is_some());
        answer.is_some()
    }

    fn kill(mut self, client: &mut Client) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        while self.next_answer() {}
        for batch in self.first..self.first + self.acknowledged {
            client.note(Event::Begun(batch));
            client.note(Event::Acknowledged(batch));
        }
        if self.acknowledged < BATCHES {
            client.note(Event::Begun(self.first + self.acknowledged));
        }
    }
}

/// A writer of [`three_writers_that_are_killed`], in another process.
#[test]
#[ignore = "it is started by another test"]
fn pour() {
    flaws::plant();
    let root = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let first: u32 = std::env::var(FIRST).unwrap().parse().unwrap();
    let mut client = Client::open(&root.join(PLANE), first).unwrap();
    for batch in first..first + BATCHES {
        client.work(&[Step::Write]);
        assert_eq!(client.faults, [""; 0]);
        println!("acknowledged {batch}");
    }
    // No process writes to this pipe, so the writer waits until it is killed.
    drop(stdin().lines().next());
}
