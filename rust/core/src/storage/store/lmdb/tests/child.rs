//! Child processes for tests: this test program again, which runs one ignored test in a role.
//!
//! Orders and answers are lines. Answers are marked, because the test harness prints as well.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

const ROLE: &str = "FLEETCAST_TEST_ROLE";
const DIRECTORY: &str = "FLEETCAST_TEST_DIRECTORY";
const MARK: &str = "answer: ";
const TEST: [&str; 4] =
    ["--exact", "storage::store::lmdb::tests::child_process", "--ignored", "--nocapture"];

/// A child, as its parent sees it.
pub(super) struct Child {
    process: std::process::Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a child. Returns when the child is ready for orders.
    pub(super) fn start(role: &str, directory: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::spawn(Command::new(program).args(TEST), role, directory).expect("the child starts")
    }

    /// Starts a child whose `directory` is a file system of 4 MiB that only the child sees.
    pub(super) fn start_on_small_disk(role: &str, directory: &Path) -> Option<Self> {
        let script = "mount -t tmpfs -o size=4m none \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(directory);
        command.arg(std::env::current_exe().unwrap()).args(TEST);
        Self::spawn(&mut command, role, directory)
    }

    fn spawn(command: &mut Command, role: &str, directory: &Path) -> Option<Self> {
        command.env(ROLE, role).env(DIRECTORY, directory);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let mut child = Self { process, orders, answers };
        child.read().filter(|line| line == "ready").map(|_| child)
    }

    fn read(&mut self) -> Option<String> {
        let lines = self.answers.by_ref().lines().map_while(std::result::Result::ok);
        let mut answers =
            lines.filter_map(|line| line.split_once(MARK).map(|(_, answer)| answer.to_owned()));
        answers.next()
    }

    /// Gives an order, and waits for its answer.
    pub(super) fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.read().expect("the child answers; its own error stands above")
    }

    /// Waits for a further answer to an order with many answers.
    pub(super) fn next_answer(&mut self) -> String {
        self.read().expect("the child goes on; its own error stands above")
    }

    /// Kills the child with SIGKILL.
    pub(super) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Lets the child end by itself.
    pub(super) fn end(self) {
        let Self { mut process, orders, answers } = self;
        drop(orders);
        // The harness of the child prints a summary, so the pipe must stay open until then.
        assert!(answers.lines().last().is_some());
        assert!(process.wait().unwrap().success());
    }

    /// In a child: returns its role and its directory.
    pub(super) fn role() -> Option<(String, PathBuf)> {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY)?);
        Some((std::env::var(ROLE).ok()?, directory))
    }

    /// In a child: gives an answer while its order is still in progress.
    pub(super) fn answer(text: &str) {
        println!("{MARK}{text}");
    }

    /// In a child: answers orders until there are no more.
    pub(super) fn serve(mut answer: impl FnMut(&str) -> String) {
        Self::answer("ready");
        for order in std::io::stdin().lines() {
            Self::answer(&answer(&order.unwrap()));
        }
    }
}
