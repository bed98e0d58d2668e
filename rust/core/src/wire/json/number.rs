//! Numbers of JSON as the nearest double.

use super::power::nearest;
use super::scan::{Scan, Scanner};
use super::string::{HIGH_BITS, ONES};

/// Eight characters `0`.
const ZEROS: u64 = ONES * 0x30;
/// Powers of ten by exponent.
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Digits that always fit a `u64`.
const DIGITS_MAX: usize = 19;
/// Beyond this, an exponent is as good as infinite; keeps arithmetic on it from overflowing.
const EXPONENT_MAX: i64 = 1 << 32;

/// A number as it is spelled: `mantissa * 10^exponent`, negated if `negative`.
struct Number {
    mantissa: u64,
    exponent: i64,
    negative: bool,
    /// Whether `mantissa` holds every digit.
    exact: bool,
}

impl Scanner<'_> {
    /// A number as the nearest double, ties to even; infinite where it is too large (C5, C6).
    #[inline]
    pub(super) fn double(&mut self) -> Scan<f64> {
        if let Some((value, at)) = self.short_decimal() {
            self.at = at;
            return Ok(value);
        }
        self.any_double().map(|(value, at)| {
            self.at = at;
            value
        })
    }

    /// A number of one to seven digits on both sides of a point, as most measurements are, and
    /// the place behind it. Nothing in here branches on what varies from one to the next.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "a lazy operator would be a branch")]
    fn short_decimal(self) -> Option<(f64, usize)> {
        let window = self.rest().first_chunk::<17>()?;
        let negative = usize::from(window.first() == Some(&b'-'));
        let (whole, whole_count) = few_digits(window, negative)?;
        let point = negative + whole_count;
        let (fraction, fraction_count) = few_digits(window, point + 1)?;
        let end = point + 1 + fraction_count;
        let leading_zero = (whole_count > 1) & (window.get(negative) == Some(&b'0'));
        let behind = window.get(end)? | 0x20;
        if (window.get(point) != Some(&b'.')) | leading_zero | (behind == b'e') {
            return None;
        }
        let unit = *POWERS.get(fraction_count)?;
        // Fourteen digits and a small power of ten: exact doubles, see `power`.
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 nothing is lost")]
        let quotient = (whole * unit + fraction).cast_signed() as f64 / unit.cast_signed() as f64;
        let sign = (negative as u64) << 63;
        Some((f64::from_bits(quotient.to_bits() | sign), self.at + end))
    }

    /// Any number, and the place behind it.
    fn any_double(mut self) -> Scan<(f64, usize)> {
        let start = self.at;
        let number = self.number()?;
        let magnitude = if number.exact { nearest(number.mantissa, number.exponent) } else { None };
        match magnitude {
            Some(magnitude) if number.negative => Ok((-magnitude, self.at)),
            Some(magnitude) => Ok((magnitude, self.at)),
            None => Ok((self.rare_double(start)?, self.at)),
        }
    }

    /// The place behind the number that begins here.
    pub(super) fn number_end(mut self) -> Scan<usize> {
        self.number().map(|_| self.at)
    }

    /// The number from `start` to here; the standard library rounds every shape correctly.
    #[cold]
    fn rare_double(self, start: usize) -> Scan<f64> {
        Ok(self.span(start, self.at)?.parse().unwrap_or(f64::INFINITY))
    }

    #[inline]
    fn number(&mut self) -> Scan<Number> {
        let negative = self.take(b'-');
        let whole_start = self.at;
        let mut mantissa = 0;
        (mantissa, self.at) = self.digits(mantissa);
        let mut digit_count = self.at - whole_start;
        if digit_count == 0 {
            return self.error();
        }
        if digit_count > 1 && self.bytes().get(whole_start) == Some(&b'0') {
            self.at = whole_start + 1;
            return self.error();
        }
        let mut exponent = 0;
        if self.take(b'.') {
            let fraction_start = self.at;
            (mantissa, self.at) = self.digits(mantissa);
            if self.at == fraction_start {
                return self.error();
            }
            digit_count += self.at - fraction_start;
            exponent = -place(self.at - fraction_start);
        }
        if self.peek() | 0x20 == b'e' {
            let shift;
            (shift, self.at) = self.exponent()?;
            exponent += shift;
        }
        Ok(Number { mantissa, exponent, negative, exact: digit_count <= DIGITS_MAX })
    }

    /// `mantissa` with the digits from here on appended, and the place behind them. It wraps
    /// around when they are too many. How many they are is not branched on where they are few:
    /// it varies from value to value, and a wrong guess costs as much as ten digits.
    #[inline]
    fn digits(self, mut mantissa: u64) -> (u64, usize) {
        let mut at = self.at;
        let bytes = self.bytes();
        while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let digits = u64::from_le_bytes(*chunk) ^ ZEROS;
            // The lowest high bit marks the first byte that is no digit.
            let others = (digits.wrapping_add(ONES * 0x76) | digits) & HIGH_BITS;
            if others == 0 {
                mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(eight_digits(digits));
                at += 8;
                continue;
            }
            // Zeros move in before the digits, and what followed them falls out: two shifts,
            // since all eight bytes may have to go.
            let bit_count = others.trailing_zeros() & 0x38;
            let value = eight_digits(digits << 8 << (56 - bit_count));
            let count = (bit_count / 8) as usize;
            let unit = POWERS.get(count).copied().unwrap_or_default();
            return (mantissa.wrapping_mul(unit).wrapping_add(value), at + count);
        }
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            at += 1;
        }
        (mantissa, at)
    }

    /// From the letter on; also the place behind it.
    #[cold]
    fn exponent(mut self) -> Scan<(i64, usize)> {
        self.at += 1;
        let negative = self.peek() == b'-';
        if matches!(self.peek(), b'+' | b'-') {
            self.at += 1;
        }
        let start = self.at;
        let mut exponent = 0_i64;
        while let digit @ b'0'..=b'9' = self.peek() {
            exponent = (exponent * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX);
            self.at += 1;
        }
        if self.at == start {
            return self.error();
        }
        Ok((if negative { -exponent } else { exponent }, self.at))
    }
}

fn place(digit_count: usize) -> i64 {
    i64::try_from(digit_count).unwrap_or(EXPONENT_MAX)
}

/// The one to seven digits at `at` and how many they are; `None` for more or fewer.
#[inline]
fn few_digits(window: &[u8; 17], at: usize) -> Option<(u64, usize)> {
    let chunk = window.get(at..)?.first_chunk::<8>()?;
    let digits = u64::from_le_bytes(*chunk) ^ ZEROS;
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & HIGH_BITS;
    let bit_count = others.trailing_zeros() & 0x78;
    if bit_count == 0 || bit_count == 64 {
        return None;
    }
    Some((eight_digits(digits << (64 - bit_count)), (bit_count / 8) as usize))
}

/// The number that eight digits (0 to 9, not their characters) spell, the first in the lowest byte.
#[inline]
const fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}
