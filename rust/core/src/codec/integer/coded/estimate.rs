//! Estimates from a sample which order of differences takes the fewest bits.

use super::residual::{Differences, ORDERS};
use super::token::zigzag;
use crate::codec::integer::number::SignedNumber;

/// Number of places in the sample, and of numbers at each place.
const PLACES: usize = 8;
const PLACE_LEN: usize = 20;

/// Number of differences that an estimate needs.
const COUNT_MIN: usize = 96;

/// Number of possible lengths of a number in bits, from 0 to 64.
const LENGTHS: usize = 65;

/// Returns the order below `end_order` that is cheapest for a sample, and the bits that a number
/// would take. `steps` converts a number to its steps from an arbitrary origin.
pub(super) fn cheapest_order<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    end_order: usize,
    steps: impl Fn(T) -> u64,
) -> (usize, f64) {
    let mut samples = [[0; PLACES * PLACE_LEN]; ORDERS];
    let mut count = 0;
    let mut runs = run_lengths.iter();
    let (mut start, mut end) = (0, 0);
    for place in 0..PLACES {
        let wanted = values.len() * place / PLACES;
        while end <= wanted {
            let Some(length) = runs.next() else { break };
            (start, end) = (end, end + *length as usize);
        }
        // Starts late enough for the wanted place, but early enough to leave `PLACE_LEN` numbers in
        // the run.
        let from = wanted.min(end.saturating_sub(PLACE_LEN)).max(start);
        let mut differences = Differences::default();
        for (index, value) in values[from..end.min(from + PLACE_LEN)].iter().enumerate() {
            differences.residual(steps(*value), end_order - 1);
            // The first numbers only serve to predict the others.
            if index + 1 >= end_order {
                let all = samples.iter_mut().zip(differences.all());
                for (sample, difference) in all.take(end_order) {
                    sample[count] = difference.cast_signed();
                }
                count += 1;
            }
        }
    }
    if count < COUNT_MIN {
        return (0, f64::MAX);
    }
    let samples = samples.iter_mut().take(end_order).enumerate();
    let bits = samples.map(|(order, sample)| (order, bits_of(&mut sample[..count], order)));
    bits.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::MAX))
}

/// Returns the median of at least one number.
pub(super) fn median(numbers: &mut [i64]) -> i64 {
    let half = numbers.len() / 2;
    *numbers.select_nth_unstable(half).1
}

/// Estimated bits of a difference. The code of its length takes fewer bits if the length is
/// frequent. The bits below the leading 1 follow as they are.
fn bits_of(differences: &mut [i64], order: usize) -> f64 {
    // Differences of order 2 and more lie around 0.
    let center = if order < 2 { median(differences) } else { 0 };
    let mut counts = [0_u16; LENGTHS];
    for difference in &*differences {
        let distance = zigzag(difference.wrapping_sub(center).cast_unsigned());
        counts[64 - distance.leading_zeros() as usize] += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a sample is small")]
    let all = differences.len() as f64;
    let present = (0_u8..).zip(counts).filter(|(_, count)| *count > 0);
    let bits = |(length, count): (u8, u16)| {
        let count = f64::from(count);
        count * (f64::from(length.saturating_sub(1)) + (all / count).log2())
    };
    present.map(bits).sum::<f64>() / all
}
