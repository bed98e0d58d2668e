//! Places of the program that call a sync, identified by the functions that lead to the call.

use std::backtrace::Backtrace;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of a place. 0 if places are not wanted.
pub(crate) type Site = usize;

/// Number of lines of the store that identify a place.
const LINES: usize = 5;
const FRAMES_MAX: usize = 48;

static IS_WANTED: AtomicBool = AtomicBool::new(false);
static SITES: Mutex<Option<Sites>> = Mutex::new(None);

#[derive(Default)]
struct Sites {
    by_addresses: HashMap<Vec<usize>, Site>,
    /// Place `n` is at `n - 1`.
    found: Vec<Steps>,
}

/// A function of the store or of LMDB that leads to a place. If its line is known, also the file
/// and the number of the line.
type Step = (String, Option<(String, usize)>);
/// The functions that lead to a place, the innermost first.
type Steps = Vec<Step>;

/// Makes [`here`] find places from now on, in the whole process.
pub(crate) fn want() {
    IS_WANTED.store(true, Ordering::Relaxed);
}

/// Returns the place that the caller was called from.
pub(crate) fn here() -> Site {
    if !IS_WANTED.load(Ordering::Relaxed) {
        return 0;
    }
    let mut frames = [std::ptr::null_mut::<c_void>(); FRAMES_MAX];
    // SAFETY: the call writes as many addresses as there is room for.
    #[expect(unsafe_code, reason = "the standard library resolves all names, each time")]
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES_MAX.try_into().unwrap()) };
    let frames = &frames[..usize::try_from(count).unwrap()];
    let addresses: Vec<usize> = frames.iter().map(|frame| frame.addr()).collect();
    if let Some(site) = sites().get_or_insert_default().by_addresses.get(&addresses) {
        return *site;
    }
    let steps = steps_of(&Backtrace::force_capture().to_string());
    let mut sites = sites();
    let sites = sites.get_or_insert_default();
    let known = sites.found.iter().position(|other| *other == steps);
    let site = 1 + known.unwrap_or_else(|| {
        sites.found.push(steps);
        sites.found.len() - 1
    });
    sites.by_addresses.insert(addresses, site);
    site
}

/// Returns places by their names. A name has the functions that lead to the place, and a number
/// among the places of these functions. So a new line elsewhere changes no name.
pub(crate) fn named(wanted: impl Iterator<Item = Site>) -> BTreeMap<String, Site> {
    let sites = sites();
    let found = &sites.as_ref().unwrap().found;
    let mut alike = BTreeMap::<Vec<&str>, Vec<(Vec<_>, Site)>>::new();
    for site in wanted {
        let steps = &found[site - 1];
        let functions = steps.iter().map(|(function, _)| function.as_str()).collect();
        let lines = steps.iter().map(|(_, line)| line.as_ref()).collect();
        alike.entry(functions).or_default().push((lines, site));
    }
    let mut named = BTreeMap::new();
    for (functions, mut places) in alike {
        places.sort_unstable();
        for (number, (_, site)) in places.into_iter().enumerate() {
            named.insert(format!("{} #{number}", functions.join(" < ")), site);
        }
    }
    named
}

/// Returns true if a line that leads to a place contains this text, or if a function has it as its
/// name.
pub(crate) fn has(site: Site, text: &str) -> bool {
    let steps = sites().as_ref().unwrap().found[site - 1].clone();
    let sources = Path::new(env!("OUT_DIR")).join("src");
    steps.iter().any(|(function, line)| {
        let Some((file, number)) = line else { return function == text };
        let source = std::fs::read_to_string(sources.join(file)).unwrap();
        source.lines().nth(number - 1).unwrap().contains(text)
    })
}

/// Returns the innermost functions of the store and of LMDB in a printed backtrace, the innermost
/// first.
fn steps_of(backtrace: &str) -> Steps {
    let mut function = "";
    let steps = backtrace.lines().map(str::trim).filter_map(|line| {
        if let Some(place) = line.strip_prefix("at ") {
            let mut others = ["/rustc/", "/registry/", "/tests/"].iter();
            let is_ours = !others.any(|other| place.contains(other));
            let (_, place) = place.split_once("src/").filter(|_| is_ours)?;
            let mut parts = place.splitn(3, ':');
            let (file, number) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
            let function = function.split_once('<').map_or(function, |(name, _)| name);
            let function = format!("{}::{function}", file.trim_end_matches(".rs"));
            return Some((function, Some((file, number))));
        }
        (_, function) = line.split_once(": ")?;
        function.starts_with("mdb_").then(|| (function.to_owned(), None))
    });
    steps.take(LINES).collect()
}

fn sites() -> MutexGuard<'static, Option<Sites>> {
    SITES.lock().unwrap_or_else(PoisonError::into_inner)
}
