//! Contexts: the two tokens before a token tell how frequent the token is.

use super::token::TOKENS;

/// Ways to choose a context. The index of a way is its code in the format.
pub(super) static CONTEXTS: [Contexts; 5] = [
    Contexts::new(1, &[], 0, &[]),
    Contexts::new(6, &[1, 3, 5, 9, 14], 1, &[]),
    Contexts::new(16, &[1, 2, 3], 4, &[1, 2, 3]),
    Contexts::new(16, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], 1, &[]),
    Contexts::new(16, &[1, 5, 13], 4, &[1, 5, 13]),
];

/// Contexts of which each context of [`CONTEXTS`] is a sum. So tokens are counted once for all ways.
pub(super) static FINEST: Contexts = Contexts::new(
    16 * FINEST_EARLIER.len(),
    &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    FINEST_EARLIER.len().to_le_bytes()[0],
    &[1, 2, 3, 5, 13],
);

/// First token of each class of the earlier token in [`FINEST`].
const FINEST_EARLIER: [u8; 6] = [0, 1, 2, 3, 5, 13];

/// Returns two tokens, the previous and the earlier, for each context of [`FINEST`].
pub(super) fn finest_pairs() -> impl Iterator<Item = (u8, u8)> {
    (0..16).flat_map(|before| FINEST_EARLIER.map(|earlier| (before, earlier)))
}

/// A context is a factor times the class of the previous token, plus the class of the token before
/// that.
///
/// Example: with a factor of 4, previous class 2 and earlier class 1, the context is 9.
pub(super) struct Contexts {
    pub(super) count: usize,
    before: [u8; TOKENS],
    earlier: [u8; TOKENS],
}

impl Contexts {
    /// The first class begins at token 0. Each other class begins at one of the given tokens.
    const fn new(count: usize, before: &[usize], factor: u8, earlier: &[usize]) -> Self {
        Self { count, before: classes(before, factor), earlier: classes(earlier, 1) }
    }

    /// Returns the context after the token `before` and the token `earlier` that precedes it. The
    /// context is below the number of contexts.
    #[inline]
    pub(super) fn of(&self, before: u8, earlier: u8) -> usize {
        let class =
            self.before[usize::from(before)].wrapping_add(self.earlier[usize::from(earlier)]);
        usize::from(class)
    }
}

const fn classes(starts: &[usize], factor: u8) -> [u8; TOKENS] {
    let mut all = [0; TOKENS];
    let mut token = 0;
    let mut class = 0;
    while token < TOKENS {
        if class < starts.len() && token == starts[class] {
            class += 1;
        }
        all[token] = class.to_le_bytes()[0] * factor;
        token += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_tokens_has_one_of_the_contexts() {
        let tokens = || (0..TOKENS).map(|token| u8::try_from(token).unwrap());
        for contexts in CONTEXTS.iter().chain([&FINEST]) {
            let all = tokens().flat_map(|before| tokens().map(move |earlier| (before, earlier)));
            let last = all.map(|(before, earlier)| contexts.of(before, earlier)).max();
            assert_eq!(last, Some(contexts.count - 1));
        }
    }

    #[test]
    fn the_finest_contexts_tell_all_that_a_way_tells() {
        let tokens = || (0..TOKENS).map(|token| u8::try_from(token).unwrap());
        let pairs: Vec<_> = finest_pairs().collect();
        for (before, earlier) in tokens().flat_map(|before| tokens().map(move |e| (before, e))) {
            let pair = pairs[FINEST.of(before, earlier)];
            for contexts in &CONTEXTS {
                assert_eq!(contexts.of(before, earlier), contexts.of(pair.0, pair.1));
            }
        }
    }
}
