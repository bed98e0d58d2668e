//! Frame of reference: numbers as steps above the smallest number, bit-packed in groups.
//!
//! Example: 1,000, 1,020 and 1,050 are 0, 2 and 5 steps of 10 above 1,000, so each takes 3 bits.

use super::bit_packing::{self, GROUP};
use super::number::SignedNumber;
use super::profile::{Profile, distance};
use super::step::Divisor;
use crate::codec::bytes::{ByteReader, put_varint, put_zigzag, varint_len, zigzag_len};
use crate::model::error::Result;

/// Flag in the width byte of a group: a base follows.
const BASE_FLAG: u8 = 0x80;

/// Layout of a column of numbers, and its length.
pub(super) struct FrameOfReference {
    reference: i64,
    step: Divisor,
    groups: Vec<PackedGroup>,
    /// Bytes that [`Self::write`] will append.
    pub(super) len: usize,
}

struct PackedGroup {
    /// Smallest number of the group, in steps above the reference. The base is 0 if a base would
    /// not save bytes.
    base: u64,
    width: u32,
}

impl FrameOfReference {
    /// Chooses the reference, the step and the widths for `count` numbers.
    pub(super) fn choose(count: usize, profile: &Profile) -> Self {
        let (reference, step) = (profile.min, profile.step);
        let mut len = zigzag_len(reference) + varint_len(step.size);
        let mut groups = Vec::with_capacity(profile.ranges.len());
        for (index, &(min, max)) in profile.ranges.iter().enumerate() {
            let group_len = GROUP.min(count - index * GROUP);
            let steps_of = |value| step.steps_of(distance(value, reference));
            let (min, max) = (steps_of(min), steps_of(max));
            let plain = PackedGroup { base: 0, width: bit_packing::width_of(max) };
            let based = PackedGroup { base: min, width: bit_packing::width_of(max - min) };
            let plain_len = bit_packing::packed_len(group_len, plain.width);
            let based_len = bit_packing::packed_len(group_len, based.width) + varint_len(min);
            len += 1 + plain_len.min(based_len);
            groups.push(if based_len < plain_len { based } else { plain });
        }
        Self { reference, step, groups, len }
    }

    /// Appends `values`. The layout must be chosen for the same values.
    pub(super) fn write<T: SignedNumber>(&self, values: &[T], out: &mut Vec<u8>) {
        out.reserve(self.len);
        put_zigzag(out, self.reference);
        put_varint(out, self.step.size);
        let mut offsets = [0; GROUP];
        for (values, group) in values.chunks(GROUP).zip(&self.groups) {
            let flag = if group.base == 0 { 0 } else { BASE_FLAG };
            out.push(group.width.to_le_bytes()[0] | flag);
            if group.base != 0 {
                put_varint(out, group.base);
            }
            let offsets = &mut offsets[..values.len()];
            for (offset, value) in offsets.iter_mut().zip(values) {
                let steps = self.step.steps_of(distance((*value).into(), self.reference));
                *offset = steps.wrapping_sub(group.base);
            }
            bit_packing::pack(offsets, group.width, out);
        }
    }
}

/// Reads `count` numbers.
pub(super) fn read(input: &mut ByteReader<'_>, count: usize) -> Result<Vec<i64>> {
    let reference = input.zigzag()?;
    let step = input.varint()?;
    input.check(step != 0)?;
    // Each group has at least its width byte, so the memory is bounded by the bytes.
    input.check(count.div_ceil(GROUP) <= input.remaining())?;
    let mut values = Vec::with_capacity(count);
    let mut offsets = [0; GROUP];
    while values.len() < count {
        let offsets = &mut offsets[..GROUP.min(count - values.len())];
        let head = input.byte()?;
        let width = u32::from(head & !BASE_FLAG);
        input.check(bit_packing::is_width(width))?;
        let base = if head & BASE_FLAG == 0 { 0 } else { input.varint()? };
        let start = reference.cast_unsigned().wrapping_add(base.wrapping_mul(step));
        let bytes = input.take(bit_packing::packed_len(offsets.len(), width))?;
        bit_packing::unpack(bytes, width, offsets);
        // Only AVX-512 has a vector form of the 64-bit multiplication.
        if step == 1 {
            values.extend(offsets.iter().map(|offset| start.wrapping_add(*offset).cast_signed()));
        } else {
            let value = |offset: &u64| start.wrapping_add(offset.wrapping_mul(step)).cast_signed();
            values.extend(offsets.iter().map(value));
        }
    }
    Ok(values)
}
