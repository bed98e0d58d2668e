//! Copies the sources of the core and makes the edits of `flaws.rs` in the copy. If an edit no
//! longer fits the sources, the build ends.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use flaws::{CLOSE, Edit, FLAWS, OPEN, SMALL_BOUNDS};

#[path = "flaws.rs"]
mod flaws;

/// Marks of the core's tests, which the copy leaves out.
const TESTS: [&str; 2] = ["#[cfg(test)]", "#[cfg(any(test, feature = \"testing\"))]"];
const NEVER: &str = "#[cfg(any())]";

fn main() {
    let package = env!("CARGO_MANIFEST_DIR");
    let core = Path::new(package).parent().expect("a folder").join("core/src");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed=flaws.rs");
    let out = std::env::var_os("OUT_DIR").expect("cargo gives it");
    let copy = Path::new(&out).join("src");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("remove the copy before");
    }
    copy_folder(&core, &copy);
    edit(&copy);
    let names: Vec<_> = FLAWS.iter().map(|flaw| flaw.name).collect();
    let names = format!("/// All flaws.\npub const FLAWS: [&str; {}] = {names:?};\n", names.len());
    let root = modules(&core, &copy) + &names;
    fs::write(Path::new(&out).join("core.rs"), root).expect("write the crate's root");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make a folder");
    for entry in fs::read_dir(from).expect("read a folder") {
        let path = entry.expect("read a folder").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            let source = fs::read_to_string(&path).expect("read a source");
            fs::write(
                &target,
                TESTS.iter().fold(source, |source, tests| source.replace(tests, NEVER)),
            )
            .expect("write a source");
        }
    }
}

/// Returns the modules of the core's `lib.rs`, with their paths in the copy.
fn modules(core: &Path, copy: &Path) -> String {
    let root = fs::read_to_string(core.join("lib.rs")).expect("read the core's root");
    let modules = root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    modules.fold(String::new(), |mut root, module| {
        let path = copy.join(module).join("mod.rs");
        let path = path.display();
        writeln!(root, "#[path = r\"{path}\"]\npub mod {module};").expect("a text grows");
        root
    })
}

/// A part of a file, and the text that replaces it.
type Change = (std::ops::Range<usize>, String);

fn edit(copy: &Path) {
    let mut changes = std::collections::BTreeMap::<&str, Vec<Change>>::new();
    for (number, flaw) in FLAWS.iter().enumerate() {
        for edit in flaw.edits {
            let (part, text) = part_of(copy, flaw.name, edit);
            let instead = edit.instead;
            let switch =
                format!("(if crate::is_planted({number}) {{ {instead} }} else {{ {text} }})");
            changes.entry(edit.file).or_default().push((part, switch));
        }
    }
    for bound in &SMALL_BOUNDS {
        let (part, _) = part_of(copy, "a bound", bound);
        changes.entry(bound.file).or_default().push((part, bound.instead.to_owned()));
    }
    for (file, mut changes) in changes {
        let path = copy.join(file);
        let mut source = fs::read_to_string(&path).expect("read a source");
        changes.sort_by_key(|(part, _)| part.start);
        // The last change is made first, so that the earlier parts keep their places.
        for (part, text) in changes.into_iter().rev() {
            source.replace_range(part, &text);
        }
        fs::write(&path, source).expect("write a source");
    }
}

/// Returns place and text of the marked part of an edit.
fn part_of(copy: &Path, name: &str, edit: &Edit) -> Change {
    let (before, rest) = edit.at.split_once(OPEN).expect("a mark opens");
    let (part, after) = rest.split_once(CLOSE).expect("a mark closes");
    let source = fs::read_to_string(copy.join(edit.file)).unwrap_or_default();
    let wanted = [before, part, after].concat();
    let found: Vec<_> = source.match_indices(&wanted).collect();
    let [(at, _)] = found[..] else {
        let (file, times) = (edit.file, found.len());
        panic!("rust/faults/flaws.rs, {name}: {file} has {times} times, not once:\n{wanted}");
    };
    let start = at + before.len();
    (start..start + part.len(), part.to_owned())
}
