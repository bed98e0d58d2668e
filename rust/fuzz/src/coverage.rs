//! Records which branches ran, from LLVM's inline counters
//! (<https://clang.llvm.org/docs/SanitizerCoverage.html>, "Inline 8bit-counters").
//!
//! The flags are in the Makefile. A program built without the flags has no counters, and no branch
//! is ever new.

use std::sync::Mutex;

const PIECE_LEN: usize = 128;
const ZEROS: [u8; PIECE_LEN] = [0; PIECE_LEN];

/// Counters of each object file: address and number.
static REGIONS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Takes the counters of an instrumented object. LLVM calls it for each object before `main`.
#[expect(unsafe_code, reason = "the name is LLVM's")]
// SAFETY: no other symbol has this name. LLVM calls it with the bounds of an array that lives for
// ever.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let region = (start.addr(), stop.addr() - start.addr());
    let mut regions = REGIONS.lock().expect("no panic holds it");
    if region.1 > 0 && !regions.contains(&region) {
        regions.push(region);
    }
}

/// Coverage so far: for each counter, a bit for each magnitude that it had after a run.
#[derive(Default)]
pub struct Coverage(Vec<u8>);

/// Sets all counters to 0.
pub fn reset() {
    for_each_region(|counters| counters.fill(0));
}

impl Coverage {
    /// Adds the branches that ran since [`reset`]. Returns true if any of them is new.
    pub fn add(&mut self) -> bool {
        let mut at = 0;
        let mut new = false;
        for_each_region(|counters| {
            if self.0.len() < at + counters.len() {
                self.0.resize(at + counters.len(), 0);
            }
            // Few counters are above 0, and comparing whole pieces takes almost no time.
            for (piece, seen) in counters.chunks(PIECE_LEN).zip(self.0[at..].chunks_mut(PIECE_LEN))
            {
                if *piece != ZEROS[..piece.len()] {
                    new |= add_piece(piece, seen);
                }
            }
            at += counters.len();
        });
        new
    }

    /// Number of counters that were ever above 0.
    #[must_use]
    pub fn branches(&self) -> usize {
        self.0.iter().filter(|&&seen| seen != 0).count()
    }
}

fn add_piece(counters: &[u8], seen: &mut [u8]) -> bool {
    let mut new = false;
    for (seen, &count) in seen.iter_mut().zip(counters) {
        if count != 0 {
            let bit = magnitude(count);
            new |= *seen & bit == 0;
            *seen |= bit;
        }
    }
    new
}

/// Returns a bit for 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, or more, as in AFL.
const fn magnitude(count: u8) -> u8 {
    1 << match count {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4..8 => 3,
        8..16 => 4,
        16..32 => 5,
        32..128 => 6,
        128.. => 7,
    }
}

#[expect(unsafe_code, reason = "the counters are LLVM's, outside of Rust's sight")]
fn for_each_region(mut visit: impl FnMut(&mut [u8])) {
    for &(address, count) in &*REGIONS.lock().expect("no panic holds it") {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: LLVM gave these bounds; the array lives for ever. Instrumented code writes to it
        // without synchronisation. Other threads belong to a target and wait for work by now. A
        // thread that does not wait yet may lose a count, which is harmless.
        visit(unsafe { std::slice::from_raw_parts_mut(start, count) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_an_object_count_once_per_magnitude() {
        let counters: &'static mut [u8] = Box::leak(vec![0_u8; 3].into_boxed_slice());
        let range = counters.as_mut_ptr_range();
        range.start.expose_provenance();
        __sanitizer_cov_8bit_counters_init(range.start, range.end);
        let mut covered = Coverage::default();
        let _ = covered.add();
        let before = covered.branches();
        for_each_region(|all| all.iter_mut().for_each(|count| *count = 5));
        assert!(covered.add());
        assert!(covered.branches() >= before + 3);
        assert!(!covered.add(), "the same again is nothing new");
        reset();
        assert!(!covered.add());
        for_each_region(|all| all.iter_mut().for_each(|count| *count = 9));
        assert!(covered.add(), "another magnitude");
    }
}
