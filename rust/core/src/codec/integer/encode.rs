//! Chooses the shortest form of a column and writes it.

use super::based::BasedNumbers;
use super::coded;
use super::delta;
use super::form;
use super::frame_of_reference::FrameOfReference;
use super::linear_prediction::{self, LinearPrediction};
use super::number::{SignedNumber, SignedNumbers};
use super::patched_frame_of_reference::{self, PatchedFrameOfReference};
use super::profile::Profile;
use crate::codec::Effort;
use crate::codec::bytes::{put_varint, put_zigzag, varint_len};

/// The shorter of two layouts for the same numbers.
enum IntegerLayout {
    Plain(FrameOfReference),
    Patched(PatchedFrameOfReference),
}

impl IntegerLayout {
    fn choose<T: SignedNumber>(values: &[T], profile: &Profile) -> Self {
        Self::shorter(FrameOfReference::choose(values.len(), profile), values, profile)
    }

    /// Returns the patched layout if it is shorter than `plain`, else `plain`.
    fn shorter<T: SignedNumber>(plain: FrameOfReference, values: &[T], profile: &Profile) -> Self {
        match PatchedFrameOfReference::choose(values, profile) {
            Some(patched) if patched.len < plain.len => Self::Patched(patched),
            _ => Self::Plain(plain),
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Plain(layout) => layout.len,
            Self::Patched(layout) => layout.len,
        }
    }

    /// Returns the form byte of this layout: `plain` or `patched`.
    const fn form(&self, plain: u8, patched: u8) -> u8 {
        match self {
            Self::Plain(_) => plain,
            Self::Patched(_) => patched,
        }
    }

    fn write<T: SignedNumber>(&self, values: &[T], out: &mut Vec<u8>) {
        match self {
            Self::Plain(layout) => layout.write(values, out),
            Self::Patched(layout) => layout.write(values, out),
        }
    }
}

/// A form of a whole column, ready to be written.
enum EncodingPlan<T> {
    Whole(IntegerLayout),
    Delta {
        firsts: (Vec<T>, FrameOfReference),
        differences: (Vec<T>, IntegerLayout),
    },
    Linear {
        form: u8,
        prediction: LinearPrediction,
        intercepts: FrameOfReference,
        residuals: PatchedFrameOfReference,
    },
}

/// Appends `values`, which lie in runs of the given lengths, in their shortest form.
///
/// # Panics
///
/// Panics if the lengths do not add up to the number of values.
pub(crate) fn encode<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    effort: Effort,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    encode_all(values, run_lengths, effort, out);
    if effort == Effort::High {
        let based = BasedNumbers::of(values, out.len() - start);
        replace_if_shorter(based, run_lengths, start, out);
    }
}

/// Replaces the bytes of `out` from `start` on by numbers over a base, if these take fewer bytes.
fn replace_if_shorter(
    based: Option<BasedNumbers>,
    run_lengths: &[u32],
    start: usize,
    out: &mut Vec<u8>,
) {
    let Some(BasedNumbers { base, quotients, remainders }) = based else { return };
    let mut bytes = vec![form::BASED];
    put_varint(&mut bytes, base.size);
    put_varint(&mut bytes, base.shift.into());
    encode_all(&quotients, run_lengths, Effort::High, &mut bytes);
    encode_all(&remainders, run_lengths, Effort::High, &mut bytes);
    if bytes.len() < out.len() - start {
        out.truncate(start);
        out.append(&mut bytes);
    }
}

/// Does the same as [`encode`], but stores each number separately.
fn encode_all<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    effort: Effort,
    out: &mut Vec<u8>,
) {
    if !encode_constant(values, out) {
        let profile = Profile::of(values);
        let plan = whole_or_delta(values, run_lengths, &profile);
        write_shorter(plan, values, (run_lengths, effort), &profile, out);
    }
}

/// Appends `values` as planned, or as coded residuals if these take clearly fewer bytes.
fn write_shorter<T: SignedNumber>(
    (len, plan): (usize, EncodingPlan<T>),
    values: &[T],
    (run_lengths, effort): (&[u32], Effort),
    profile: &Profile,
    out: &mut Vec<u8>,
) {
    let coded = match effort {
        Effort::Low => None,
        Effort::High => coded::encode(values, run_lengths, profile, len),
    };
    match coded {
        Some(mut coded) => {
            out.push(form::CODED);
            out.append(&mut coded);
        }
        None => plan.write(values, out),
    }
}

/// Does the same as [`encode`] for instants, and also tries linear prediction.
pub(crate) fn encode_times(values: &[i64], run_lengths: &[u32], effort: Effort, out: &mut Vec<u8>) {
    if encode_constant(values, out) {
        return;
    }
    let profile = Profile::of(values);
    let several = Some(run_lengths).filter(|lengths| lengths.len() > 1);
    let lines = several.and_then(|lengths| linear(values, lengths, form::LINEAR_RUNS, &profile));
    // Lines of long runs take few bytes each, and one line hardly fits all of the runs.
    let are_long = values.len() >= linear_prediction::LENGTH_MIN * run_lengths.len();
    let one_line = if lines.is_some() && are_long {
        None
    } else {
        let whole = [u32::try_from(values.len()).expect("a block has fewer rows")];
        linear(values, &whole, form::LINEAR, &profile)
    };
    let plans = [Some(whole_or_delta(values, run_lengths, &profile)), one_line, lines];
    let start = out.len();
    if let Some(plan) = plans.into_iter().flatten().min_by_key(|(len, _)| *len) {
        write_shorter(plan, values, (run_lengths, effort), &profile, out);
    }
    if effort == Effort::High {
        let based = BasedNumbers::of_times(values, out.len() - start);
        replace_if_shorter(based, run_lengths, start, out);
    }
}

/// Appends `values` if they are all equal. Returns true if they are all equal or if there are none.
fn encode_constant<T: SignedNumber>(values: &[T], out: &mut Vec<u8>) -> bool {
    let Some(&first) = values.first() else { return true };
    let is_constant = values.iter().all(|value| *value == first);
    if is_constant {
        out.push(form::CONSTANT);
        put_zigzag(out, first.into());
    }
    is_constant
}

/// Returns the length and plan of the numbers or of their differences, whichever takes fewer bytes.
fn whole_or_delta<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    profile: &Profile,
) -> (usize, EncodingPlan<T>) {
    let plain = FrameOfReference::choose(values.len(), profile);
    let mut delta = delta(values, run_lengths, plain.len);
    // Usually the differences are so short that the search for a range of the numbers can be
    // skipped.
    let len_min = plain.len.min(patched_frame_of_reference::len_min(values.len(), profile));
    if let Some(delta) = delta.take_if(|(len, _)| *len < len_min) {
        return delta;
    }
    let whole = IntegerLayout::shorter(plain, values, profile);
    let len = whole.len();
    delta.filter(|(delta_len, _)| *delta_len < len).unwrap_or((len, EncodingPlan::Whole(whole)))
}

/// Returns the length and plan of first numbers and differences, if the length is below `len_max`.
fn delta<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    len_max: usize,
) -> Option<(usize, EncodingPlan<T>)> {
    // Runs of one value each have no differences.
    if run_lengths.len() == values.len() {
        return None;
    }
    let (firsts, differences) = delta::split(values, run_lengths);
    let first_layout = FrameOfReference::choose(firsts.len(), &Profile::of(&firsts));
    // The first numbers alone may already take too many bytes.
    if first_layout.len >= len_max {
        return None;
    }
    let layout = IntegerLayout::choose(&differences, &Profile::of(&differences));
    let len = first_layout.len + layout.len();
    let plan =
        EncodingPlan::Delta { firsts: (firsts, first_layout), differences: (differences, layout) };
    (len < len_max).then_some((len, plan))
}

/// Returns the length and plan of linear prediction, if lines fit the runs.
fn linear(
    values: &[i64],
    run_lengths: &[u32],
    form: u8,
    profile: &Profile,
) -> Option<(usize, EncodingPlan<i64>)> {
    let prediction = LinearPrediction::fit(values, run_lengths, profile)?;
    let intercepts = &prediction.intercepts;
    let intercepts = FrameOfReference::choose(intercepts.len(), &Profile::of(intercepts));
    let residuals = match &prediction.residuals {
        SignedNumbers::Narrow(all) => PatchedFrameOfReference::choose(all, &Profile::of(all))?,
        SignedNumbers::Wide(all) => PatchedFrameOfReference::choose(all, &Profile::of(all))?,
    };
    let slope = prediction.slope;
    let slope_len = varint_len(slope.whole) + varint_len(slope.fraction.into());
    let head_len = varint_len(prediction.step.size) + slope_len;
    let len = head_len + intercepts.len + residuals.len;
    Some((len, EncodingPlan::Linear { form, prediction, intercepts, residuals }))
}

impl<T: SignedNumber> EncodingPlan<T> {
    fn write(&self, values: &[T], out: &mut Vec<u8>) {
        match self {
            Self::Whole(layout) => {
                out.push(layout.form(form::FRAME_OF_REFERENCE, form::PATCHED));
                layout.write(values, out);
            }
            Self::Delta { firsts: (firsts, first_layout), differences: (differences, layout) } => {
                out.push(layout.form(form::DELTA, form::DELTA_PATCHED));
                first_layout.write(firsts, out);
                layout.write(differences, out);
            }
            Self::Linear { form, prediction, intercepts, residuals } => {
                out.push(*form);
                put_varint(out, prediction.step.size);
                put_varint(out, prediction.slope.whole);
                put_varint(out, prediction.slope.fraction.into());
                intercepts.write(&prediction.intercepts, out);
                match &prediction.residuals {
                    SignedNumbers::Narrow(numbers) => residuals.write(numbers, out),
                    SignedNumbers::Wide(numbers) => residuals.write(numbers, out),
                }
            }
        }
    }
}

/// Appends numbers that are one run.
///
/// # Panics
///
/// Panics if there are more than `u32::MAX` numbers.
pub(crate) fn encode_run(values: &[i64], effort: Effort, out: &mut Vec<u8>) {
    let length = u32::try_from(values.len()).expect("a block has fewer rows");
    encode(values, &[length], effort, out);
}
