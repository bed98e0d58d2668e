//! Reading a patched frame of reference.

use crate::codec::bytes::ByteReader;
use crate::codec::integer::delta;
use crate::codec::integer::number::SignedNumbers;
use crate::codec::integer::radix_packing::WordLayout;
use crate::codec::simd::{mapped, multiversioned};
use crate::model::error::Result;

/// Largest magnitude that 32 bits hold with either sign.
const NARROW_MAX: u128 = i32::MAX as u128;

/// Stored numbers whose head and exceptions are read, but whose digits are not.
pub(crate) struct PatchedReader<'a> {
    reference: i64,
    step: u64,
    words: WordLayout,
    count: usize,
    /// Position of each exception, and its steps from the reference.
    exceptions: Vec<(usize, i64)>,
    bytes: &'a [u8],
}

impl<'a> PatchedReader<'a> {
    /// Takes the bytes of `count` numbers off `input`.
    ///
    /// A few bytes can claim any number of numbers if the radix is 1, so the caller bounds `count`.
    pub(crate) fn open(input: &mut ByteReader<'a>, count: usize) -> Result<Self> {
        let reference = input.zigzag()?;
        let step = input.varint()?;
        let radix = input.varint()?;
        let digits = input.byte()?;
        let words = WordLayout::new(radix, digits.into()).ok_or_else(|| input.corrupt())?;
        input.check(step != 0)?;
        let exceptions = read_exceptions(input, count)?;
        let bytes = input.take(words.len(count))?;
        Ok(Self { reference, step, words, count, exceptions, bytes })
    }

    /// Returns the numbers as they were written.
    pub(crate) fn numbers(&self) -> SignedNumbers {
        if self.largest_in_range().max(self.largest_exception()) <= NARROW_MAX {
            SignedNumbers::Narrow(self.narrow(0))
        } else {
            SignedNumbers::Wide(self.wide())
        }
    }

    /// Returns the numbers whose differences are stored. Each run begins with an element of
    /// `firsts`.
    pub(crate) fn joined(&self, firsts: &[i64], run_lengths: &[u32]) -> SignedNumbers {
        let first = firsts.iter().map(|first| first.unsigned_abs()).max().unwrap_or(0);
        let in_range = self.largest_in_range().saturating_mul(self.count as u128);
        let others = self.largest_exception().saturating_mul(self.exceptions.len() as u128);
        if in_range.saturating_add(others).saturating_add(first.into()) <= NARROW_MAX {
            SignedNumbers::Narrow(delta::join_narrow(
                firsts,
                self.narrow(firsts.len()),
                run_lengths,
            ))
        } else {
            SignedNumbers::Wide(delta::join(firsts, &self.wide(), run_lengths))
        }
    }

    /// Largest magnitude of a number in the range.
    fn largest_in_range(&self) -> u128 {
        let span = i128::from(self.step) * i128::from(self.words.radix() - 1);
        let max = i128::from(self.reference) + span;
        max.unsigned_abs().max(self.reference.unsigned_abs().into())
    }

    /// Largest magnitude of an exception.
    fn largest_exception(&self) -> u128 {
        let distance = |steps: i64| i128::from(self.step).saturating_mul(steps.into());
        let number = |steps| distance(steps).saturating_add(self.reference.into()).unsigned_abs();
        self.exceptions.iter().map(|(_, steps)| number(*steps)).max().unwrap_or(0)
    }

    /// Returns `gap` zeros and the numbers modulo 2^32.
    fn narrow(&self, gap: usize) -> Vec<i32> {
        let (reference, step) = (low_half(self.reference), low_half(self.step.cast_signed()));
        let mut numbers = if step == 1 {
            self.words.unpack(self.bytes, self.count, reference, gap)
        } else {
            let mut digits = self.words.unpack(self.bytes, self.count, 0, gap);
            scale_narrow(&mut digits, reference, step);
            digits
        };
        for (position, steps) in &self.exceptions {
            numbers[gap + *position] = reference.wrapping_add(low_half(*steps).wrapping_mul(step));
        }
        // Reinterprets the same memory as signed numbers.
        numbers.into_iter().map(u32::cast_signed).collect()
    }

    /// Returns the numbers modulo 2^64.
    fn wide(&self) -> Vec<i64> {
        let digits = self.words.unpack(self.bytes, self.count, 0, 0);
        let step = self.step.cast_signed();
        let mut numbers = scale_wide(&digits, self.reference, step);
        for (position, steps) in &self.exceptions {
            numbers[*position] = self.reference.wrapping_add(steps.wrapping_mul(step));
        }
        numbers
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2^32")]
const fn low_half(number: i64) -> u32 {
    number as u32
}

multiversioned! {
    fn scale_narrow(digits: &mut [u32], reference: u32, step: u32) {
        for digit in digits {
            *digit = reference.wrapping_add(digit.wrapping_mul(step));
        }
    }
}

multiversioned! {
    fn scale_wide(digits: &[u32], reference: i64, step: i64) -> Vec<i64> {
        mapped(digits, |digit| reference.wrapping_add(i64::from(digit).wrapping_mul(step)))
    }
}

/// Reads ascending positions below `count`, and the steps of each from the reference.
fn read_exceptions(input: &mut ByteReader<'_>, count: usize) -> Result<Vec<(usize, i64)>> {
    // Each exception takes at least two bytes.
    let exception_count = input.len(count.min(input.remaining() / 2))?;
    let mut exceptions = Vec::with_capacity(exception_count);
    let mut next = 0;
    for _ in 0..exception_count {
        let gap = input.len(count)?;
        let position = gap + next;
        input.check(position < count)?;
        exceptions.push((position, input.zigzag()?));
        next = position + 1;
    }
    Ok(exceptions)
}
