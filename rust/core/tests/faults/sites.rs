//! Places of the program from which syncs are called, told apart by the functions that lead there.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of a place, 0 where nobody asks for places.
pub(crate) type Site = usize;

/// Lines of the store that tell a place.
const LINES: usize = 5;
const FRAMES_MAX: usize = 48;

static IS_WANTED: AtomicBool = AtomicBool::new(false);
static SITES: Mutex<Option<Sites>> = Mutex::new(None);

#[derive(Default)]
struct Sites {
    by_addresses: HashMap<Vec<usize>, Site>,
    /// The name of site `n` is at `n - 1`.
    names: Vec<String>,
}

/// Lets [`here`] find places from now on, in all of this process.
pub(crate) fn want() {
    IS_WANTED.store(true, Ordering::Relaxed);
}

/// The place that the caller was called from.
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
    let name = name_of(&Backtrace::force_capture().to_string());
    let mut sites = sites();
    let sites = sites.get_or_insert_default();
    let known = sites.names.iter().position(|other| *other == name);
    let site = 1 + known.unwrap_or_else(|| {
        sites.names.push(name);
        sites.names.len() - 1
    });
    sites.by_addresses.insert(addresses, site);
    site
}

/// Name of a place.
pub(crate) fn name(site: Site) -> String {
    sites().as_ref().unwrap().names[site - 1].clone()
}

/// Tells if one of the lines that lead to a place has this text.
pub(crate) fn has(site: Site, text: &str) -> bool {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    name(site).split(" < ").any(|line| {
        let Some((file, number)) = line.rsplit_once(':') else { return false };
        let source = std::fs::read_to_string(sources.join(file)).unwrap();
        source.lines().nth(number.parse::<usize>().unwrap() - 1).unwrap().contains(text)
    })
}

/// The innermost lines of the store, and functions of LMDB, in a printed backtrace, the innermost
/// first.
fn name_of(backtrace: &str) -> String {
    let names = backtrace.lines().map(str::trim).filter_map(|line| {
        if let Some(place) = line.strip_prefix("at ") {
            let mut others = ["/rustc/", "/registry/", "/tests/"].iter();
            let is_ours = !others.any(|other| place.contains(other));
            let (_, place) = place.split_once("src/").filter(|_| is_ours)?;
            return place.rsplit_once(':').map(|(place, _)| place.to_owned());
        }
        let (_, function) = line.split_once(": ")?;
        function.starts_with("mdb_").then(|| function.to_owned())
    });
    names.take(LINES).collect::<Vec<_>>().join(" < ")
}

fn sites() -> MutexGuard<'static, Option<Sites>> {
    SITES.lock().unwrap_or_else(PoisonError::into_inner)
}
