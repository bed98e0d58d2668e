//! Ratios are doubles that are integers over a divisor. The divisor is no power of ten if the
//! values are means of a few readings, or readings scaled to a range. The divisor is a power of two
//! if the values are sums.
//!
//! Example: means of three readings, such as 20.333… and 21.666…, are the integers 61 and 65 over
//! 3.
//!
//! The arithmetic that made the values rounded more than once. Some values therefore differ from
//! the double nearest to their ratio by a few units in the last place. The difference is stored as
//! well, so that every bit comes back.

/// Number of values that are sampled to find a divisor.
const SAMPLE: usize = 64;

/// Divisors that are no powers of two are smaller than this, 2^24.
const DIVISOR_END: f64 = 16_777_216.0;

/// Exponent of the largest power of two that may be a divisor, and bits of the integers over it.
const FRACTION_BITS_MAX: u32 = 62;
const INTEGER_BITS_MAX: u32 = 62;

/// A remainder below this share of the larger number counts as 0.
const TOLERANCE: f64 = 1e-5;

/// A sampled value is a ratio if it differs by at most so many units in the last place.
const ULPS_MAX: u64 = 64;

/// A divisor is accepted with at most one other value per this many sampled values.
const SAMPLE_PER_OTHER: usize = 16;

/// Each run gets its own divisor if runs have at least this many values on average.
const OWN_DIVISOR_LENGTH: usize = 256;

/// Divisors, the integers, and the units in the last place from `integer / divisor` to each value.
pub(super) struct Ratios {
    /// A divisor for each run, or one divisor for all runs.
    pub(super) divisors: Vec<i64>,
    pub(super) integers: Vec<i64>,
    pub(super) ulps: Vec<i64>,
}

impl Ratios {
    /// Splits `values` into their parts. Returns `None` if some values have no divisor.
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

/// Returns the integer nearest to `value * divisor`. Also returns the units in the last place from
/// the ratio to the value. Returns `None` if the integer is too large.
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

/// Returns the value that [`split`] was given.
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

/// Finds the smallest divisor that fits nearly all sampled values and is no large power of two.
fn find_divisor(sample: &[f64]) -> Option<i64> {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let span = sorted.last()? - sorted.first()?;
    let step = gaps.fold(0.0, |step, gap| common_step(step, gap, span / DIVISOR_END));
    if step <= 0.0 || !span.is_finite() {
        return None;
    }
    // The whole span determines the step most precisely.
    let step = span / (span / step).round();
    // The values need not be multiples of their step, so multiples of `1 / step` are tried as well.
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

/// Returns the greatest number that nearly divides both gaps. A gap of up to `gap_min` counts as 0.
fn common_step(step: f64, gap: f64, gap_min: f64) -> f64 {
    let (mut step, mut rest) = (step.max(gap), step.min(gap));
    while rest > gap_min.max(step * TOLERANCE) {
        let next = (step - (step / rest).round() * rest).abs();
        (step, rest) = (rest, next);
    }
    step
}

/// Returns the smallest power of two over which nearly all sampled values are integers. Returns the
/// largest power that leaves room for the integers of all values if that power is smaller.
fn binary_divisor(sample: &[f64], values: &[f64]) -> Option<i64> {
    let mut needed: Vec<u32> = sample.iter().map(|value| fraction_bits(*value)).collect();
    let index = needed.len().checked_sub(1 + needed.len() / SAMPLE_PER_OTHER)?;
    let needed = *needed.select_nth_unstable(index).1;
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let bits = (0..=needed.min(FRACTION_BITS_MAX)).rev();
    let fits = |bits: &u32| largest * double(1 << bits) < double(1 << (INTEGER_BITS_MAX - 1));
    bits.into_iter().find(fits).map(|bits| 1 << bits)
}

/// Number of binary digits after the point of a finite number.
///
/// Example: 2.75 is 10.11 in binary, so it has 2.
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
