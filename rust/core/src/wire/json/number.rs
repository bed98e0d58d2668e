//! Numbers of JSON as the nearest double.

use super::power::nearest;
use super::scan::{Scan, Scanner};

/// Digits that always fit a `u64`.
const DIGITS_MAX: usize = 19;
/// Beyond this, an exponent is as good as infinite; keeps arithmetic on it from overflowing.
const EXPONENT_MAX: i64 = 1 << 32;

/// A number as it is spelled: `mantissa * 10^exponent`, negated if `negative`.
pub(super) struct Number<'a> {
    text: &'a str,
    mantissa: u64,
    exponent: i64,
    negative: bool,
    /// Whether `mantissa` holds every digit.
    exact: bool,
}

impl Number<'_> {
    /// The nearest double, ties to even; infinite where the number is too large (C5, C6).
    #[inline]
    pub(super) fn value(&self) -> f64 {
        let magnitude = if self.exact {
            nearest(self.mantissa, self.exponent)
        } else {
            None
        };
        match magnitude {
            Some(magnitude) if self.negative => -magnitude,
            Some(magnitude) => magnitude,
            // Rare shapes: the standard library rounds every one of them correctly.
            None => self.text.parse().unwrap_or(f64::INFINITY),
        }
    }
}

impl<'a> Scanner<'a> {
    /// A number; its value is worked out only where it is asked for.
    #[inline]
    pub(super) fn number(&mut self) -> Scan<Number<'a>> {
        let start = self.at;
        let negative = self.take(b'-');
        let digits_start = self.at;
        let mut mantissa = 0;
        self.digits(&mut mantissa);
        let mut digit_count = self.at - digits_start;
        if digit_count == 0 {
            return self.error();
        }
        if digit_count > 1 && self.bytes().get(digits_start) == Some(&b'0') {
            self.at = digits_start + 1;
            return self.error();
        }
        let mut exponent = 0;
        if self.take(b'.') {
            let fraction_start = self.at;
            self.digits(&mut mantissa);
            let fraction_count = self.at - fraction_start;
            if fraction_count == 0 {
                return self.error();
            }
            digit_count += fraction_count;
            exponent = -i64::try_from(fraction_count).unwrap_or(EXPONENT_MAX);
        }
        if matches!(self.peek(), b'e' | b'E') {
            exponent += self.exponent()?;
        }
        let text = self.span(start, self.at)?;
        Ok(Number {
            text,
            mantissa,
            exponent,
            negative,
            exact: digit_count <= DIGITS_MAX,
        })
    }

    /// Passes digits and appends them to `mantissa`, which wraps around when they are too many.
    #[inline]
    fn digits(&mut self, mantissa: &mut u64) {
        while let Some(chunk) = self.rest().first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            if !are_digits(word) {
                break;
            }
            *mantissa = mantissa
                .wrapping_mul(100_000_000)
                .wrapping_add(eight_digits(word));
            self.at += 8;
        }
        while let digit @ b'0'..=b'9' = self.peek() {
            *mantissa = mantissa
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
    }

    #[cold]
    fn exponent(&mut self) -> Scan<i64> {
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
        Ok(if negative { -exponent } else { exponent })
    }
}

/// Whether all eight bytes are decimal digits.
#[inline]
const fn are_digits(word: u64) -> bool {
    let above = word.wrapping_add(0x4646_4646_4646_4646);
    let below = word.wrapping_sub(0x3030_3030_3030_3030);
    (above | below) & 0x8080_8080_8080_8080 == 0
}

/// The number that eight digits spell, the first in the lowest byte.
#[inline]
const fn eight_digits(word: u64) -> u64 {
    let digits = word.wrapping_sub(0x3030_3030_3030_3030);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}
