//! Columns of signed numbers: constant, packed, differences within runs, or heights above lines.

use super::frame_of_reference;
use super::linear_prediction::{self, Lines, Slope};
use super::number::{Number, Numbers};
use super::patched_frame_of_reference::{self, Ranged};
use super::profile::Profile;
use crate::codec::bytes::{Cursor, put_varint, put_zigzag, varint_len};
use crate::model::error::Result;

const CONSTANT: u8 = 0;
const PACKED: u8 = 1;
const DELTA: u8 = 2;
const RANGED: u8 = 3;
const DELTA_RANGED: u8 = 4;
const LINE: u8 = 5;
const LINES: u8 = 6;

/// Numbers in the shorter of two ways.
enum Plan {
    Packed(frame_of_reference::Plan),
    Ranged(patched_frame_of_reference::Plan),
}

impl Plan {
    fn of<T: Number>(values: &[T], profile: &Profile) -> Self {
        Self::shorter(frame_of_reference::plan(values.len(), profile), values, profile)
    }

    /// This one or, if it is shorter, a ranged one.
    fn shorter<T: Number>(
        packed: frame_of_reference::Plan,
        values: &[T],
        profile: &Profile,
    ) -> Self {
        match patched_frame_of_reference::plan(values, profile) {
            Some(ranged) if ranged.len < packed.len => Self::Ranged(ranged),
            _ => Self::Packed(packed),
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Packed(plan) => plan.len,
            Self::Ranged(plan) => plan.len,
        }
    }

    /// The form that says which way it is.
    const fn form(&self, packed: u8, ranged: u8) -> u8 {
        match self {
            Self::Packed(_) => packed,
            Self::Ranged(_) => ranged,
        }
    }

    fn write<T: Number>(&self, values: &[T], out: &mut Vec<u8>) {
        match self {
            Self::Packed(plan) => frame_of_reference::write(values, plan, out),
            Self::Ranged(plan) => patched_frame_of_reference::write(values, plan, out),
        }
    }
}

/// How all numbers will be written.
enum Shape<T> {
    Whole(Plan),
    /// Heads of the runs and differences.
    Delta([(Vec<T>, Plan); 2]),
    Lines {
        form: u8,
        lines: Lines,
        bases: frame_of_reference::Plan,
        heights: patched_frame_of_reference::Plan,
    },
}

/// Appends `values`, which lie in runs of the given lengths, in their shortest form.
///
/// # Panics
///
/// If the lengths do not add up to the number of values.
pub(crate) fn encode<T: Number>(values: &[T], run_lengths: &[u32], out: &mut Vec<u8>) {
    if !encode_constant(values, out) {
        let (_, shape) = shape_of(values, run_lengths, &Profile::of(values));
        shape.write(values, out);
    }
}

/// [`encode`] of instants, which may lie along lines.
pub(crate) fn encode_times(values: &[i64], run_lengths: &[u32], out: &mut Vec<u8>) {
    if encode_constant(values, out) {
        return;
    }
    let profile = Profile::of(values);
    let whole = [u32::try_from(values.len()).expect("a block has fewer rows")];
    let lines = lines_through(values, &whole, LINE, &profile);
    let several = Some(run_lengths).filter(|lengths| lengths.len() > 1);
    let several = several.and_then(|lengths| lines_through(values, lengths, LINES, &profile));
    let shapes = [Some(shape_of(values, run_lengths, &profile)), lines, several];
    if let Some((_, shape)) = shapes.into_iter().flatten().min_by_key(|(len, _)| *len) {
        shape.write(values, out);
    }
}

/// Whether there was nothing but one number, if any, to be written.
fn encode_constant<T: Number>(values: &[T], out: &mut Vec<u8>) -> bool {
    let Some(&first) = values.first() else { return true };
    let is_constant = values.iter().all(|value| *value == first);
    if is_constant {
        out.push(CONSTANT);
        put_zigzag(out, first.into());
    }
    is_constant
}

/// The shorter of the numbers and their differences, and how long that is.
fn shape_of<T: Number>(values: &[T], run_lengths: &[u32], profile: &Profile) -> (usize, Shape<T>) {
    let packed = frame_of_reference::plan(values.len(), profile);
    let mut delta = differences(values, run_lengths, packed.len);
    // Most often the differences are so much shorter that no range of the numbers needs to be chosen.
    let floor = packed.len.min(patched_frame_of_reference::len_floor(values.len(), profile));
    if let Some(delta) = delta.take_if(|(len, _)| *len < floor) {
        return delta;
    }
    let whole = Plan::shorter(packed, values, profile);
    let len = whole.len();
    delta.filter(|(delta_len, _)| *delta_len < len).unwrap_or((len, Shape::Whole(whole)))
}

/// Heads of the runs and differences, and how long these are, unless that is `len_max` or more.
fn differences<T: Number>(
    values: &[T],
    run_lengths: &[u32],
    len_max: usize,
) -> Option<(usize, Shape<T>)> {
    // Runs of one value each have no differences.
    if run_lengths.len() == values.len() {
        return None;
    }
    let (heads, tails) = split(values, run_lengths);
    let head_plan = frame_of_reference::plan(heads.len(), &Profile::of(&heads));
    // Only where the tails have a chance are they looked at.
    if head_plan.len >= len_max {
        return None;
    }
    let tail_plan = Plan::of(&tails, &Profile::of(&tails));
    let len = head_plan.len + tail_plan.len();
    let parts = [(heads, Plan::Packed(head_plan)), (tails, tail_plan)];
    (len < len_max).then_some((len, Shape::Delta(parts)))
}

/// Lines through all runs, and how long they are to write, if they can be.
fn lines_through(
    values: &[i64],
    run_lengths: &[u32],
    form: u8,
    profile: &Profile,
) -> Option<(usize, Shape<i64>)> {
    let lines = Lines::through(values, run_lengths, profile)?;
    let bases = frame_of_reference::plan(lines.bases.len(), &Profile::of(&lines.bases));
    let heights = match &lines.heights {
        Numbers::Narrow(heights) => {
            patched_frame_of_reference::plan(heights, &Profile::of(heights))?
        }
        Numbers::Wide(heights) => patched_frame_of_reference::plan(heights, &Profile::of(heights))?,
    };
    let slope_len = varint_len(lines.slope.whole) + varint_len(lines.slope.fraction.into());
    let len = varint_len(lines.step.size) + slope_len + bases.len + heights.len;
    Some((len, Shape::Lines { form, lines, bases, heights }))
}

impl<T: Number> Shape<T> {
    fn write(&self, values: &[T], out: &mut Vec<u8>) {
        match self {
            Self::Whole(plan) => {
                out.push(plan.form(PACKED, RANGED));
                plan.write(values, out);
            }
            Self::Delta([(heads, head_plan), (tails, tail_plan)]) => {
                out.push(tail_plan.form(DELTA, DELTA_RANGED));
                head_plan.write(heads, out);
                tail_plan.write(tails, out);
            }
            Self::Lines { form, lines, bases, heights } => {
                out.push(*form);
                put_varint(out, lines.step.size);
                put_varint(out, lines.slope.whole);
                put_varint(out, lines.slope.fraction.into());
                frame_of_reference::write(&lines.bases, bases, out);
                match &lines.heights {
                    Numbers::Narrow(numbers) => {
                        patched_frame_of_reference::write(numbers, heights, out)
                    }
                    Numbers::Wide(numbers) => {
                        patched_frame_of_reference::write(numbers, heights, out)
                    }
                }
            }
        }
    }
}

/// First values of the runs, and differences of all others from the one before.
fn split<T: Number>(values: &[T], run_lengths: &[u32]) -> (Vec<T>, Vec<T>) {
    let mut heads = Vec::with_capacity(run_lengths.len());
    let mut tails = Vec::with_capacity(values.len() - run_lengths.len());
    let mut rest = values;
    for &length in run_lengths {
        let (run, after) = rest.split_at(length as usize);
        heads.push(run[0]);
        tails.extend(run[1..].iter().zip(run).map(|(value, before)| value.minus(*before)));
        rest = after;
    }
    assert!(rest.is_empty(), "runs cover {} of {} values", values.len() - rest.len(), values.len());
    (heads, tails)
}

/// Reads `count` numbers; `run_lengths` are positive and add up to `count`.
///
/// A constant column has as many numbers as its few bytes claim: the caller bounds `count`.
pub(crate) fn decode(input: &mut Cursor<'_>, count: usize, run_lengths: &[u32]) -> Result<Numbers> {
    if count == 0 {
        return Ok(Numbers::Narrow(Vec::new()));
    }
    match input.byte()? {
        CONSTANT => {
            let number = input.zigzag()?;
            Ok(i32::try_from(number).map_or_else(
                |_| Numbers::Wide(vec![number; count]),
                |number| Numbers::Narrow(vec![number; count]),
            ))
        }
        PACKED => frame_of_reference::read(input, count).map(Numbers::Wide),
        RANGED => Ok(Ranged::read(input, count)?.numbers()),
        form @ (DELTA | DELTA_RANGED) => {
            let heads = frame_of_reference::read(input, run_lengths.len())?;
            let tail_count = count - run_lengths.len();
            if form == DELTA_RANGED {
                return Ok(Ranged::read(input, tail_count)?.sums(&heads, run_lengths));
            }
            let tails = frame_of_reference::read(input, tail_count)?;
            Ok(Numbers::Wide(patched_frame_of_reference::sums(&heads, &tails, run_lengths)))
        }
        LINE => {
            let length = u32::try_from(count).map_err(|_| input.corrupt())?;
            read_lines(input, &[length])
        }
        LINES => read_lines(input, run_lengths),
        _ => Err(input.corrupt()),
    }
}

/// Reads numbers above lines, one for each of the runs.
fn read_lines(input: &mut Cursor<'_>, run_lengths: &[u32]) -> Result<Numbers> {
    let step = input.varint()?;
    let whole = input.varint()?;
    let fraction = u32::try_from(input.varint()?).map_err(|_| input.corrupt())?;
    let bases = frame_of_reference::read(input, run_lengths.len())?;
    let count = run_lengths.iter().map(|length| *length as usize).sum();
    let heights = Ranged::read(input, count)?.numbers();
    Ok(Numbers::Wide(linear_prediction::raise(
        &heights,
        &bases,
        run_lengths,
        step,
        Slope { whole, fraction },
    )))
}

/// Appends numbers that are one run.
///
/// # Panics
///
/// If there are more than `u32::MAX`.
pub(crate) fn encode_run(values: &[i64], out: &mut Vec<u8>) {
    let length = u32::try_from(values.len()).expect("a block has fewer rows");
    encode(values, &[length], out);
}

/// Reads `count` numbers that are one run; see [`decode`] for `count`.
pub(crate) fn decode_long_run(input: &mut Cursor<'_>, count: usize) -> Result<Vec<i64>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    Ok(decode(input, count, &[length])?.widen())
}

/// Reads `count` numbers that are one run and each fit a `u32` below `end`.
pub(crate) fn decode_run(input: &mut Cursor<'_>, count: usize, end: u32) -> Result<Vec<u32>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    decode(input, count, &[length])?.below(end).ok_or_else(|| input.corrupt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::simd::on_all_levels;

    fn round_trip(values: &[i64], run_lengths: &[u32]) -> (u8, usize) {
        written_by(encode, values, run_lengths)
    }

    fn written_by(
        encode: impl Fn(&[i64], &[u32], &mut Vec<u8>),
        values: &[i64],
        run_lengths: &[u32],
    ) -> (u8, usize) {
        let bytes = on_all_levels(|| {
            let mut bytes = Vec::new();
            encode(values, run_lengths, &mut bytes);
            bytes
        });
        let back = on_all_levels(|| {
            let mut input = Cursor::new(&bytes, "numbers");
            let back = decode(&mut input, values.len(), run_lengths).unwrap().widen();
            input.end().unwrap();
            back
        });
        assert_eq!(back, values);
        (bytes[0], bytes.len())
    }

    #[test]
    fn the_shortest_form_is_taken() {
        assert_eq!(round_trip(&[-7; 500], &[500]), (CONSTANT, 2));
        // Steps of ten seconds cost nothing once the step is known.
        let times: Vec<i64> =
            (0..512).map(|at| 1_700_000_000_000_000_000 + at * 10_000_000_000).collect();
        let (form, len) = round_trip(&times, &[512]);
        assert_eq!(form, DELTA_RANGED);
        assert!(len < 40, "{len}");
        // Jumps between runs do not widen the steps within them.
        let walks: Vec<i64> = (0..1_000).map(|at| (at / 10) * 7_919 % 36_000 + at % 10).collect();
        let (form, len) = round_trip(&walks, &[10; 100]);
        assert_eq!(form, DELTA_RANGED);
        assert!(len < 100 * 2 + 30, "{len}");
        assert_eq!(round_trip(&[3, 1, 2], &[1; 3]).0, PACKED);
    }

    /// As even as dice fall, and the same on every machine.
    fn dice(below: i64, at: i64) -> i64 {
        ((at + 1).wrapping_mul(0x5851_f42d_4c95_7f2d) >> 33 & 0x3fff_ffff) % below
    }

    #[test]
    fn a_range_takes_fractions_of_a_bit_and_few_strangers_do_not_widen_it() {
        let mut values: Vec<i64> = (0..6_000).map(|at| 500 + 3 * dice(41, at)).collect();
        let each = vec![1; values.len()];
        let (form, len) = round_trip(&values, &each);
        assert_eq!(form, RANGED);
        // log2(41) is 5.36; whole bits would take 6.
        assert!(len < 6_000 * 55 / 80, "{len}");
        for (at, stranger) in [(0, -40_000), (17, 36_500), (3_000, 503 + 3 * 41), (5_999, 2)] {
            values[at] = stranger;
        }
        let (form, patched_len) = round_trip(&values, &each);
        assert_eq!(form, RANGED);
        assert!(patched_len < len + 40, "{patched_len}");
        // What wraps around is a few strangers among its differences.
        let mut angle = 0;
        let angles = (0..6_000).map(|at| {
            angle += dice(241, at) - 80;
            angle % 36_000
        });
        let angles: Vec<i64> = angles.collect();
        let (form, len) = round_trip(&angles, &[6_000]);
        assert_eq!(form, DELTA_RANGED);
        assert!(len < 6_000 + 150, "{len}");
        let groups: Vec<i64> = (0..6_000).map(|at| at / 128 * 100_000 + dice(10, at)).collect();
        assert_eq!(round_trip(&groups, &each).0, PACKED);
    }

    #[test]
    fn times_that_tick_evenly_cost_their_jitter() {
        let time = |tick: i64, at: i64| {
            1_700_000_000_000_000_000 + (at * tick / 100 + dice(10, at)) * 1_000_000
        };
        for tick in [1_000_000, 999] {
            let times: Vec<i64> = (0..2_000).map(|at| time(tick, at)).collect();
            let (form, len) = written_by(encode_times, &times, &[1; 2_000]);
            assert_eq!(form, LINE);
            assert!(len < 2_000 * 37 / 80 + 40, "{tick}: {len}");
        }
        // Runs begin again.
        let times: Vec<i64> = (0..2_000).map(|at| time(1_000_000, at % 400)).collect();
        let (form, len) = written_by(encode_times, &times, &[400; 5]);
        assert_eq!(form, LINES);
        assert!(len < 2_000 * 37 / 80 + 80, "{len}");
        let extremes = [i64::MIN, i64::MAX, -1, 0].repeat(20);
        written_by(encode_times, &extremes, &[80]);
        written_by(encode_times, &[7; 40], &[40]);
        let falling: Vec<i64> = (0..100).map(|at| -at * 7_000 + dice(9, at)).collect();
        assert_eq!(written_by(encode_times, &falling, &[100]).0, DELTA_RANGED);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Numbers around those that 32 bits hold, and what adds up to them, in runs of any length.
        #[test]
        fn numbers_of_32_bits_and_a_few_more_come_back(
            at_end: bool,
            end in prop_oneof![Just(i64::from(i32::MAX)), Just(1_i64 << 30), Just(1_i64 << 40), Just(0_i64)],
            below in prop_oneof![2_i64..300, 1_i64 << 20..1_i64 << 22],
            step in prop_oneof![Just(1_i64), Just(5_i64), Just(1_000_i64)],
            lengths in prop::collection::vec(1_u32..300, 1..6),
            stranger in prop::option::of(any::<prop::sample::Index>()),
            seed: u16,
        ) {
            let count = i64::from(lengths.iter().sum::<u32>());
            let start = if at_end { end - below * step * 2 } else { -end - 1 };
            let number = |at: i64| start + step * dice(below, at + i64::from(seed));
            let mut numbers: Vec<i64> = (0..count).map(number).collect();
            if let Some(stranger) = stranger {
                let at = stranger.index(numbers.len());
                numbers[at] -= 1 << 31;
            }
            round_trip(&numbers, &lengths);
            let mut sum = 0;
            let sums: Vec<i64> = numbers.iter().map(|number| { sum += number - start; sum + start }).collect();
            round_trip(&sums, &lengths);
            written_by(encode_times, &sums, &lengths);
            let narrow: Option<Vec<i32>> = numbers.iter().map(|number| i32::try_from(*number).ok()).collect();
            if let Some(narrow) = narrow.filter(|numbers| numbers.iter().all(|number| number.unsigned_abs() < 1 << 30)) {
                let bytes = |encode: &dyn Fn(&mut Vec<u8>)| {
                    let mut bytes = Vec::new();
                    encode(&mut bytes);
                    bytes
                };
                let wide = bytes(&|out| encode(&numbers, &lengths, out));
                prop_assert_eq!(on_all_levels(|| bytes(&|out| encode(&narrow, &lengths, out))), wide);
            }
        }
    }

    #[test]
    fn the_whole_range_comes_back() {
        let extremes = [i64::MIN, i64::MAX, -1, 0, i64::MAX, i64::MIN, 1];
        round_trip(&extremes, &[7]);
        round_trip(&extremes, &[3, 4]);
        round_trip(&extremes, &[1; 7]);
        round_trip(&[i64::MIN, i64::MAX].repeat(200), &[400]);
    }
}
