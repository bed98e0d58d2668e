//! The changes that another program makes to files, from the system calls that `strace` prints.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::dice::Dice;
use crate::disk::{Change, Disk, Fate, Node, read};

const STRACE: &str = "strace";
/// Calls that change files, or positions in files that are written.
const CALLS: &str = "open,openat,creat,write,writev,pwrite64,pwritev,lseek,ftruncate,\
                     rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,fsync,fdatasync";
/// More bytes than a call writes here.
const STRING_BYTES_MAX: &str = "16777216";

/// Thread, name, arguments and result of a call that succeeded.
static CALL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\d+) +(\w+)\((.*)\) += (\d+)").unwrap());
static STRING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""((?:\\x\w\w)*)""#).unwrap());
/// Descriptor and path of an open file.
static FILE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+)<((?:\\x\w\w)*)>").unwrap());

/// Returns true if programs can be traced here.
pub(crate) fn can_trace() -> bool {
    Command::new(STRACE).arg("true").output().is_ok_and(|output| output.status.success())
}

/// Runs a program on the files below `root`, which are the present files of `disk`. Returns the
/// changes.
pub(crate) fn trace(root: &Path, disk: &Disk, program: &Command) -> Vec<Change> {
    let mut trace = Trace::of(root, disk);
    let output = crate::scratch();
    let calls = output.path().join("calls");
    let mut strace = Command::new(STRACE);
    strace.args(["-f", "-y", "-xx", "-s", STRING_BYTES_MAX, "-e", CALLS, "-o"]).arg(&calls);
    strace.arg(program.get_program()).args(program.get_args());
    strace.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(calls).unwrap().lines().for_each(|line| trace.line(line));
    let now = trace.disk.cut_with(&Fate::Everything, &mut Dice::new(0));
    assert!(now == read(root), "a call that changed a file is unknown");
    trace.changes
}

struct Trace {
    disk: Disk,
    /// Files and directories by their present path.
    nodes: BTreeMap<PathBuf, Node>,
    last: Node,
    lengths: HashMap<Node, u64>,
    /// Open files by descriptor.
    open: HashMap<String, OpenFile>,
    /// Calls that did not return yet, by thread.
    begun: HashMap<String, String>,
    changes: Vec<Change>,
}

#[derive(Default)]
struct OpenFile {
    at: u64,
    appends: bool,
    is_synced: bool,
}

impl Trace {
    fn of(root: &Path, disk: &Disk) -> Self {
        let present = disk.present().into_iter();
        // The root's own path is empty, and joined it would end with a slash.
        let nodes = present.map(|(path, node)| (root.join(path).components().collect(), node));
        let nodes: BTreeMap<PathBuf, Node> = nodes.collect();
        let length = |path: &PathBuf| Some(path.metadata().ok()?.len());
        let lengths = nodes.iter().map(|(path, node)| (*node, length(path).unwrap())).collect();
        let (disk, last) = (disk.clone(), disk.last());
        let (open, begun) = Default::default();
        Self { disk, nodes, last, lengths, open, begun, changes: Vec::new() }
    }

    /// Returns the recorded directory of a path, and the name in the directory.
    fn entry(&self, path: &Path) -> Option<(Node, String)> {
        let name = path.file_name()?.to_str()?.to_owned();
        let is_lock = crate::disk::is_lock(&name);
        Some((*self.nodes.get(path.parent()?)?, name)).filter(|_| !is_lock)
    }

    fn adopt(&mut self, path: &Path) -> Node {
        self.last += 1;
        self.nodes.insert(path.to_owned(), self.last);
        self.last
    }

    fn push(&mut self, change: Change) {
        self.disk.apply(&change);
        self.changes.push(change);
    }

    fn line(&mut self, line: &str) {
        let thread = line.split(' ').next().unwrap_or_default().to_owned();
        if let Some(begun) = line.strip_suffix("<unfinished ...>") {
            self.begun.insert(thread, begun.to_owned());
            return;
        }
        let resumed = line.split_once(" resumed>").filter(|(begun, _)| begun.contains("<... "));
        let joined = resumed.map(|(_, rest)| self.begun.remove(&thread).unwrap() + rest);
        if let Some(call) = CALL.captures(joined.as_deref().unwrap_or(line)) {
            self.call(&call[2], &call[3], call[4].parse().unwrap());
        }
    }

    /// Notes a call that returned `result`.
    fn call(&mut self, name: &str, arguments: &str, result: u64) {
        let mut paths = STRING.captures_iter(arguments).map(|path| path_of(&path[1]));
        match name {
            "open" | "openat" | "creat" => self.opened(&paths.next().unwrap(), arguments, result),
            "mkdir" | "mkdirat" => self.make(&paths.next().unwrap(), true),
            "rename" | "renameat" | "renameat2" => {
                self.rename(&paths.next().unwrap(), &paths.next().unwrap());
            }
            "unlink" | "unlinkat" => {
                let path = paths.next().unwrap();
                if let Some((directory, name)) = self.entry(&path) {
                    self.nodes.remove(&path).unwrap();
                    self.push(Change::Remove { directory, name });
                }
            }
            _ => {
                let Some(file) = FILE.captures(arguments) else { return };
                if let Some(node) = self.nodes.get(&path_of(&file[2])) {
                    self.file_call(name, *node, &file, arguments, result);
                }
            }
        }
    }

    /// Notes a call for an open file.
    fn file_call(&mut self, name: &str, node: Node, file: &Captures, arguments: &str, result: u64) {
        let last = || arguments.rsplit(", ").next().unwrap().parse::<u64>().unwrap();
        let length = self.lengths.get(&node).copied().unwrap_or_default();
        let open = self.open.entry(file[1].to_owned()).or_default();
        match name {
            "lseek" => open.at = result,
            "fsync" | "fdatasync" => self.push(Change::Sync { node, site: 0, bytes: None }),
            "ftruncate" => {
                self.lengths.insert(node, last());
                self.push(Change::Resize { file: node, length: last() });
            }
            _ => {
                let is_placed = name.starts_with('p');
                let at = if is_placed {
                    last()
                } else if open.appends {
                    length
                } else {
                    open.at
                };
                let end = at + result;
                if !is_placed {
                    open.at = end;
                }
                let is_synced = open.is_synced;
                let parts = STRING.captures_iter(arguments).map(|part| bytes_of(&part[1]));
                let bytes = parts.collect::<Vec<_>>().concat();
                let bytes = bytes[..usize::try_from(result).unwrap()].into();
                self.lengths.insert(node, length.max(end));
                self.push(Change::Write { file: node, at, bytes });
                if is_synced {
                    self.push(Change::Sync { node, site: 0, bytes: Some(at..end) });
                }
            }
        }
    }

    fn opened(&mut self, path: &Path, arguments: &str, descriptor: u64) {
        let has = |flag| arguments.contains(flag);
        let (appends, is_synced) = (has("O_APPEND"), has("O_DSYNC") || has("O_SYNC"));
        let open = OpenFile { at: 0, appends, is_synced };
        self.open.insert(descriptor.to_string(), open);
        match self.nodes.get(path) {
            None if has("O_CREAT") => self.make(path, false),
            Some(file) if has("O_TRUNC") => {
                let file = *file;
                self.lengths.insert(file, 0);
                self.push(Change::Resize { file, length: 0 });
            }
            _ => {}
        }
    }

    fn make(&mut self, path: &Path, is_directory: bool) {
        let Some((directory, name)) = self.entry(path) else { return };
        let node = self.adopt(path);
        self.push(Change::Make { directory, name, node, is_directory });
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let (Some((directory, old)), Some((into, new))) = (self.entry(from), self.entry(to)) else {
            return;
        };
        assert_eq!(directory, into, "a file is renamed within its directory");
        let node = self.nodes.remove(from).unwrap();
        self.nodes.insert(to.to_owned(), node);
        self.push(Change::Rename { directory, from: old, to: new });
    }
}

/// Returns the bytes of a string that is all in hexadecimal. Example: `\x41\x42` is `AB`.
fn bytes_of(text: &str) -> Vec<u8> {
    let bytes = text.split("\\x").skip(1);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn path_of(text: &str) -> PathBuf {
    String::from_utf8_lossy(&bytes_of(text)).into_owned().into()
}
