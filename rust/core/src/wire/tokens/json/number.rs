//! Numbers of JSON as the nearest double.

use super::power::nearest;
use super::scan::{JsonResult, Scanner};
use crate::model::swar::{digit_count, digits_and_others, eight_digits, few_digits, number, word};

/// Powers of ten by exponent.
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Digits that always fit a `u64`.
const DIGITS_MAX: usize = 19;
/// Beyond this bound an exponent acts as infinite. The bound prevents overflow of arithmetic on it.
const EXPONENT_MAX: i64 = 1 << 32;

/// A number as it is written: `mantissa * 10^exponent`, negated if `negative`. Example: `-1.25` is
/// 125 * 10^-2, negated.
struct JsonNumber {
    mantissa: u64,
    exponent: i64,
    negative: bool,
    /// If true, `mantissa` holds every digit.
    exact: bool,
}

impl Scanner<'_> {
    /// Reads a number as the nearest double, ties to even. Infinite if it is too large.
    #[inline]
    pub(crate) fn double(&mut self) -> JsonResult<f64> {
        if let Some((value, length)) = short_decimal(word(self.rest())) {
            self.at += length;
            return Ok(value);
        }
        if let Some((value, length)) = short_integer(word(self.rest())) {
            self.at += length;
            return Ok(value);
        }
        if let Some((value, at)) = self.middling_decimal() {
            self.at = at;
            return Ok(value);
        }
        self.any_double().map(|(value, at)| {
            self.at = at;
            value
        })
    }

    /// Reads a number with one to seven digits on both sides of a point. Returns it with the offset
    /// after it. As in [`short_decimal`], no branch depends on a property that varies between
    /// numbers.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "a lazy operator would be a branch")]
    fn middling_decimal(self) -> Option<(f64, usize)> {
        let window = self.rest().first_chunk::<24>()?;
        let negative = usize::from(window.first() == Some(&b'-'));
        let text = window.get(negative..)?;
        let whole = word(text);
        let point = digit_count(whole);
        let fraction = word(text.get(point + 1..)?);
        let fraction_count = digit_count(fraction);
        let end = point + 1 + fraction_count;
        let leading_zero = (point > 1) & (text.first() == Some(&b'0'));
        let is_other =
            (text.get(point) != Some(&b'.')) | leading_zero | ends_otherwise(*text.get(end)?);
        if is_other | (point == 0) | (point == 8) | (fraction_count == 0) | (fraction_count == 8) {
            return None;
        }
        let unit = *POWERS.get(fraction_count)?;
        let mantissa = few_digits(whole, point) * unit + few_digits(fraction, fraction_count);
        Some((quotient(mantissa, unit, negative as u64), self.at + negative + end))
    }

    /// Reads any number. Returns it with the offset after it.
    fn any_double(mut self) -> JsonResult<(f64, usize)> {
        let start = self.at;
        let number = self.number()?;
        let magnitude = if number.exact { nearest(number.mantissa, number.exponent) } else { None };
        match magnitude {
            Some(magnitude) if number.negative => Ok((-magnitude, self.at)),
            Some(magnitude) => Ok((magnitude, self.at)),
            None => Ok((self.rare_double(start)?, self.at)),
        }
    }

    /// Returns the offset after the number that begins here.
    pub(crate) fn number_end(mut self) -> JsonResult<usize> {
        self.number().map(|_| self.at)
    }

    /// Reads the number from `start` to here. The standard library rounds every form correctly.
    #[cold]
    fn rare_double(self, start: usize) -> JsonResult<f64> {
        Ok(self.span(start, self.at)?.parse().unwrap_or(f64::INFINITY))
    }

    #[inline]
    fn number(&mut self) -> JsonResult<JsonNumber> {
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
            exponent = -shift_of(self.at - fraction_start);
        }
        if self.peek() | 0x20 == b'e' {
            let shift;
            (shift, self.at) = self.exponent()?;
            exponent += shift;
        }
        Ok(JsonNumber { mantissa, exponent, negative, exact: digit_count <= DIGITS_MAX })
    }

    /// Appends the digits from here on to `mantissa`. Returns it with the offset after them. The
    /// value wraps around if there are too many digits. Few digits are read without a branch on
    /// their number: it varies from value to value, and a wrong guess costs as much as ten digits.
    #[inline]
    fn digits(self, mut mantissa: u64) -> (u64, usize) {
        let mut at = self.at;
        loop {
            let word = word(self.bytes().get(at..).unwrap_or_default());
            let count = digit_count(word);
            if count < 8 {
                let unit = POWERS.get(count).copied().unwrap_or_default();
                let value = few_digits(word, count);
                return (mantissa.wrapping_mul(unit).wrapping_add(value), at + count);
            }
            mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(eight_digits(word));
            at += 8;
        }
    }

    /// Reads an exponent from the letter on. Returns it with the offset after it.
    #[cold]
    fn exponent(mut self) -> JsonResult<(i64, usize)> {
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

/// Returns how far `digit_count` digits after the point lower the exponent.
fn shift_of(digit_count: usize) -> i64 {
    i64::try_from(digit_count).unwrap_or(EXPONENT_MAX)
}

/// Returns the number at the start of a text and its length. The number must have digits on both
/// sides of a point and end within these eight characters. Most measurements are such numbers.
/// Example: `-12.75,` in `text` gives -12.75 and 6.
///
/// No branch here depends on a property that varies between numbers, and the end is known before
/// any digit is read.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a lazy operator would be a branch")]
fn short_decimal(text: u64) -> Option<(f64, usize)> {
    let negative = u64::from(byte_at(text, 0) == b'-');
    // A zero byte moves in at the end, and ends no number.
    let text = text >> (8 * negative);
    let (digits, others) = digits_and_others(text);
    // The second is right if the first is a point.
    let second = others & others.wrapping_sub(1);
    // Positions in bits: 0 is the first byte, 64 means absent.
    let (point, end) = (others.trailing_zeros() & 0x78, second.trailing_zeros() & 0x78);
    let leading_zero = (point > 8) & (byte_at(text, 0) == b'0');
    let after = byte_at(text, end);
    let is_other = (byte_at(text, point) != b'.') | leading_zero | ends_otherwise(after);
    if is_other | (after == 0) | (point == 0) | (end == point + 8) | (end == 64) {
        return None;
    }
    let whole = (1 << point) - 1;
    let mantissa = number(((digits & whole) << 8 | digits & !(whole << 8 | 0xff)) << (64 - end));
    let unit = *POWERS.get(((end - point) / 8 - 1) as usize)?;
    Some((quotient(mantissa, unit, negative), (end / 8) as usize + usize::from(negative != 0)))
}

/// Reads a number of at most seven digits without a point, as [`short_decimal`] does.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a lazy operator would be a branch")]
fn short_integer(text: u64) -> Option<(f64, usize)> {
    let negative = u64::from(byte_at(text, 0) == b'-');
    let text = text >> (8 * negative);
    let count = digit_count(text);
    let after = byte_at(text.checked_shr(u32::try_from(8 * count).ok()?)?, 0);
    let leading_zero = (count > 1) & (byte_at(text, 0) == b'0');
    let is_other = leading_zero | (after == b'.') | ends_otherwise(after);
    if is_other | (after == 0) | (count == 0) {
        return None;
    }
    let length = count + usize::from(negative != 0);
    Some((quotient(few_digits(text, count), 1, negative), length))
}

/// Returns true if a number continues after its fraction.
#[inline]
const fn ends_otherwise(byte: u8) -> bool {
    byte | 0x20 == b'e'
}

/// Returns the byte that begins at bit `at`. Any byte for 64.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lowest byte is what is asked for")]
const fn byte_at(text: u64, at: u32) -> u8 {
    text.wrapping_shr(at) as u8
}

/// Returns `mantissa / unit`. Both are exact doubles (fourteen digits and a small power of ten), so
/// one division gives the nearest double, see `power`.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "below 2^53 nothing is lost")]
const fn quotient(mantissa: u64, unit: u64, negative: u64) -> f64 {
    let quotient = mantissa.cast_signed() as f64 / unit.cast_signed() as f64;
    f64::from_bits(quotient.to_bits() | negative << 63)
}
