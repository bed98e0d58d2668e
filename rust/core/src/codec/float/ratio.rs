//! Ratios: doubles that are integers over a divisor which is no power of ten, as means of a few readings
//! are, and readings that were scaled to a range; or over a power of two, as sums are.
//!
//! Whoever made them rounded more than once, so some are off from the nearest double to their ratio by
//! a few units in the last place. These are stored, too, so that every bit comes back.

/// Values looked at to find a divisor.
const SAMPLE: usize = 64;

/// Divisors that are no powers of two are smaller than this.
const DIVISOR_END: f64 = 16_777_216.0;

/// Largest power of two that is a divisor, and bits of the integers over it.
const FRACTION_BITS_MAX: u32 = 62;
const INTEGER_BITS_MAX: u32 = 62;

/// Remainders below this share of the larger number are none.
const TOLERANCE: f64 = 1e-5;

/// Units in the last place that most values are off at most.
const ULPS_MAX: u64 = 64;

/// Values in a sample for each one that is no ratio.
const SAMPLE_PER_OTHER: usize = 16;

/// Mean length from which on each run has a divisor of its own.
const OWN_DIVISOR_LENGTH: usize = 256;

/// Divisors, the integers, and the units in the last place from `integer / divisor` to each value.
pub(super) struct Ratios {
    /// One for each run, or one for all.
    pub(super) divisors: Vec<i64>,
    pub(super) integers: Vec<i64>,
    pub(super) ulps: Vec<i64>,
}

impl Ratios {
    /// Takes `values` apart, unless some have no divisor.
    pub(super) fn of(values: &[f64], run_lengths: &[u32]) -> Option<Self> {
        let all = [u32::try_from(values.len()).ok()?];
        let own = run_lengths.len() * OWN_DIVISOR_LENGTH <= values.len();
        let mut ratios = Self { divisors: Vec::new(), integers: Vec::new(), ulps: Vec::new() };
        let mut rest = values;
        for length in if own { run_lengths } else { &all } {
            let run;
            (run, rest) = rest.split_at(*length as usize);
            let sample: Vec<f64> =
                run.iter().step_by(run.len().div_ceil(SAMPLE).max(1)).copied().collect();
            let divisor = find_divisor(&sample).or_else(|| binary_divisor(&sample, run))?;
            ratios.divisors.push(divisor);
            for value in run {
                let (integer, ulps) = split(*value, divisor)?;
                ratios.integers.push(integer);
                ratios.ulps.push(ulps);
            }
        }
        Some(ratios)
    }
}

/// The integer nearest to `value * divisor`, and the units in the last place from their ratio to the
/// value; `None` where it is too large.
fn split(value: f64, divisor: i64) -> Option<(i64, i64)> {
    let integer = (value * double(divisor)).round();
    if integer.is_nan() || integer.abs() >= double(1 << INTEGER_BITS_MAX) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "in range")]
    let integer = integer as i64;
    let ratio = double(integer) / double(divisor);
    Some((integer, value.to_bits().wrapping_sub(ratio.to_bits()).cast_signed()))
}

/// The value of which [`split`] made these.
#[inline]
pub(super) fn join(integer: i64, ulps: i64, divisor: i64) -> f64 {
    let ratio = double(integer) / double(divisor);
    f64::from_bits(ratio.to_bits().wrapping_add(ulps.cast_unsigned()))
}

#[inline]
#[expect(clippy::cast_precision_loss, reason = "rounded alike when written and read")]
const fn double(integer: i64) -> f64 {
    integer as f64
}

/// The smallest divisor that serves nearly all of a sample, and is no large power of two.
fn find_divisor(sample: &[f64]) -> Option<i64> {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let span = sorted.last()? - sorted.first()?;
    let step = gaps.fold(0.0, |step, gap| common_step(step, gap, span / DIVISOR_END));
    if step <= 0.0 || !span.is_finite() {
        return None;
    }
    // Over the whole span the step is known best.
    let step = span / (span / step).round();
    // Ratios need not lie on multiples of their step: one may lie between two.
    let divisors = (1..=4).map(|part| (f64::from(part) / step).round());
    divisors.filter(|divisor| (2.0..DIVISOR_END).contains(divisor)).find_map(|divisor| {
        #[expect(clippy::cast_possible_truncation, reason = "in range")]
        let divisor = divisor as i64;
        let is_other = |value: &&f64| {
            split(**value, divisor).is_none_or(|(_, ulps)| ulps.unsigned_abs() > ULPS_MAX)
        };
        let others = sample.iter().filter(is_other).count();
        (others <= sample.len() / SAMPLE_PER_OTHER).then_some(divisor)
    })
}

/// The greatest number of which both are multiples, nearly; gaps of up to `gap_min` are none.
fn common_step(step: f64, gap: f64, gap_min: f64) -> f64 {
    let (mut step, mut rest) = (step.max(gap), step.min(gap));
    while rest > gap_min.max(step * TOLERANCE) {
        let next = (step - (step / rest).round() * rest).abs();
        (step, rest) = (rest, next);
    }
    step
}

/// The power of two over which nearly all of a sample are integers, or the largest that leaves room for
/// the integers of all values.
fn binary_divisor(sample: &[f64], values: &[f64]) -> Option<i64> {
    let mut needed: Vec<u32> = sample.iter().map(|value| fraction_bits(*value)).collect();
    let index = needed.len().checked_sub(1 + needed.len() / SAMPLE_PER_OTHER)?;
    let needed = *needed.select_nth_unstable(index).1;
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let bits = (0..=needed.min(FRACTION_BITS_MAX)).rev();
    let fits = |bits: &u32| largest * double(1 << bits) < double(1 << (INTEGER_BITS_MAX - 1));
    bits.into_iter().find(fits).map(|bits| 1 << bits)
}

/// Binary digits that a finite number has after its point.
fn fraction_bits(value: f64) -> u32 {
    let bits = value.to_bits();
    let exponent = i64::from(u16::try_from(bits >> 52 & 0x7ff).unwrap_or(0)).max(1);
    let significand = bits & ((1 << 52) - 1) | u64::from(bits >> 52 & 0x7ff > 0) << 52;
    if significand == 0 {
        return 0;
    }
    let last = exponent - 1_075 + i64::from(significand.trailing_zeros());
    u32::try_from(-last).unwrap_or(0)
}
