//! Frequencies of the tokens in one context, in parts of 2048, with four significant bits.

use super::bits::{BitReader, BitWriter};
use super::token::TOKENS;

pub(super) const SCALE_BITS: u32 = 11;
const SCALE: u32 = 1 << SCALE_BITS;

/// Number of bits for the length of a frequency, and of bits kept after its leading 1.
const LENGTH_BITS: u32 = 4;
const KEPT_BITS: u32 = 3;

/// Number of bits of a token.
const TOKEN_BITS: u32 = 8;

/// Number of occurrences of each token in one context.
pub(super) type TokenCounts = [u32; TOKENS];

/// Frequencies that add up to [`SCALE`].
#[derive(Clone)]
pub(super) struct Frequencies {
    /// The most frequent token. Its frequency is the rest that the other tokens leave.
    main: u8,
    of: [u16; TOKENS],
}

impl Frequencies {
    /// Returns frequencies for these counts. Returns `None` if all counts are 0 or the frequencies
    /// do not fit.
    pub(super) fn of_counts(counts: &TokenCounts) -> Option<Self> {
        let total = u64::from(counts.iter().sum::<u32>());
        let (main, count_max) = (0_u8..).zip(counts).max_by_key(|(_, count)| **count)?;
        let share = |count: u32| u64::from(count) * u64::from(SCALE);
        let wanted = share(*count_max).checked_div(total)?;
        // Rounds to nearest, unless that takes more than half of the main token's share. Then
        // rounds down.
        [1, 0].into_iter().find_map(|half| {
            let mut of = [0_u16; TOKENS];
            for (frequency, count) in of.iter_mut().zip(counts).filter(|(_, count)| **count > 0) {
                let exact = (share(*count) + half * total / 2) / total;
                *frequency = kept(u32::try_from(exact).ok()?, half);
            }
            of[usize::from(main)] = 0;
            let others: u32 = of.iter().copied().map(u32::from).sum();
            let left = SCALE.checked_sub(others).filter(|left| *left > 0)?;
            let is_fair = half == 0 || u64::from(left) * 2 > wanted;
            of[usize::from(main)] = u16::try_from(left).ok()?;
            is_fair.then_some(Self { main, of })
        })
    }

    /// Estimated bits of the table for these counts of the first tokens.
    pub(super) fn table_bits(counts: &[u32]) -> u32 {
        let mut present = (0..counts.len()).filter(|token| counts[*token] > 0);
        let Some(first) = present.next() else { return 1 };
        let last = present.next_back().unwrap_or(first);
        let used = counts[first..=last].iter().filter(|count| **count > 0).count();
        let bits = 3 * TOKEN_BITS as usize
            + LENGTH_BITS as usize * (last - first + 1)
            + KEPT_BITS as usize * used;
        u32::try_from(bits).unwrap_or(u32::MAX)
    }

    /// Returns for each token its frequency and the sum of the frequencies before it.
    pub(super) fn ranges(&self) -> [(u16, u16); TOKENS] {
        let mut start = 0;
        self.of.map(|frequency| {
            let range = (frequency, start);
            start += frequency;
            range
        })
    }

    pub(super) fn write(&self, out: &mut BitWriter) {
        let is_other = |token: usize| token != usize::from(self.main);
        let mut others = (0..TOKENS).filter(|token| self.of[*token] > 0 && is_other(*token));
        let start = others.next().unwrap_or(0);
        let end = others.next_back().unwrap_or(start) + 1;
        out.put(self.main.into(), TOKEN_BITS);
        out.put(start as u64, TOKEN_BITS);
        out.put(end as u64, TOKEN_BITS);
        for frequency in (start..end).filter(|token| is_other(*token)).map(|token| self.of[token]) {
            let length = u16::BITS - frequency.leading_zeros();
            out.put(length.into(), LENGTH_BITS);
            let kept = length.saturating_sub(1).min(KEPT_BITS);
            let rest = u64::from(frequency) >> (length.saturating_sub(1) - kept);
            out.put(rest & ((1 << kept) - 1), kept);
        }
    }

    /// Reads frequencies that [`Self::write`] wrote. Returns `None` if the frequencies do not add
    /// up.
    pub(super) fn read(input: &mut BitReader) -> Option<Self> {
        let main = u8::try_from(input.take(TOKEN_BITS)).ok()?;
        let start = usize::try_from(input.take(TOKEN_BITS)).ok()?;
        let end = usize::try_from(input.take(TOKEN_BITS)).ok()?;
        let mut of = [0_u16; TOKENS];
        let mut left = SCALE;
        for (token, frequency) in (start..end).zip(of.get_mut(start..end)?) {
            if token == usize::from(main) {
                continue;
            }
            let length = u32::try_from(input.take(LENGTH_BITS)).ok()?;
            if length > SCALE_BITS {
                return None;
            }
            let rest = length.saturating_sub(1);
            let kept = rest.min(KEPT_BITS);
            let first = u64::from(length > 0) << kept;
            *frequency = u16::try_from((first | input.take(kept)) << (rest - kept)).ok()?;
            left = left.checked_sub((*frequency).into())?;
        }
        *of.get_mut(usize::from(main))? = u16::try_from(left).ok().filter(|left| *left > 0)?;
        Some(Self { main, of })
    }
}

/// Rounds to four significant bits, down if `half` is 0, and to at least 1.
///
/// Example: 1,234 is rounded to 1,280, or down to 1,152.
fn kept(exact: u32, half: u64) -> u16 {
    let length = u32::BITS - exact.leading_zeros();
    let dropped = length.saturating_sub(KEPT_BITS + 1);
    let half = if half == 0 || dropped == 0 { 0 } else { 1 << (dropped - 1) };
    let rounded = ((exact + half) >> dropped) << dropped;
    u16::try_from(rounded.clamp(1, SCALE - 1)).unwrap_or(1)
}
