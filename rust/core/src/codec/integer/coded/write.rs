//! Writing coded residuals.

use super::bits::BitWriter;
use super::context::{CONTEXTS, Contexts, FINEST, finest_pairs};
use super::estimate::{cheapest_order, median};
use super::frequencies::{Frequencies, TokenCounts};
use super::rans;
use super::residual::{Differences, ORDERS};
use super::token::{CLASSES, TOKENS, token_of, zigzag};
use crate::codec::EFFORT_COUNT_MIN;
use crate::codec::bytes::{put_len, put_varint, put_zigzag};
use crate::codec::integer::number::SignedNumber;
use crate::codec::integer::profile::Profile;

/// At least one byte in this many must be saved, because coded residuals take longer to read.
const SAVED_MIN: usize = 16;

/// Orders below this are tried first.
const LOW_ORDERS: usize = 3;

/// Number of residuals that are sampled to find their median.
const SAMPLE: usize = 64;

/// Encodes `values`, which lie in runs. Returns `None` unless the bytes are at least a sixteenth
/// shorter than the `len` bytes of another form.
pub(in super::super) fn encode<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    profile: &Profile,
    len: usize,
) -> Option<Vec<u8>> {
    // In a short column the frequencies would take too many bytes.
    if values.len() < EFFORT_COUNT_MIN {
        return None;
    }
    let reference = profile.min;
    let steps =
        |value: T| profile.step.signed_steps(value.into().wrapping_sub(reference)).cast_unsigned();
    let len_max = len - len / SAVED_MIN;
    // If a high order saves bytes, a low order also saves some. Most columns therefore end here.
    let (low, bits) = cheapest_order(values, run_lengths, LOW_ORDERS, steps);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let is_worth_it = bits * (values.len() as f64) < len_max as f64 * 8.0;
    if !is_worth_it {
        return None;
    }
    let (any, bits_of_any) = cheapest_order(values, run_lengths, ORDERS, steps);
    let order = if bits_of_any < bits { any } else { low };
    let mut residuals = residuals(values, run_lengths, order, steps);
    let center = center_of(&residuals);
    // Relative to the median, residuals of either sign are small.
    for residual in &mut residuals {
        *residual = zigzag(residual.wrapping_sub(center.cast_unsigned()));
    }
    let mut out = Vec::with_capacity(len_max);
    out.push(order.to_le_bytes()[0]);
    put_zigzag(&mut out, reference);
    put_varint(&mut out, profile.step.size);
    put_zigzag(&mut out, center);
    write_residuals(&residuals, &mut out)?;
    (out.len() < len_max).then_some(out)
}

/// Returns the median of a sample of the residuals.
fn center_of(residuals: &[u64]) -> i64 {
    let stride = residuals.len().div_ceil(SAMPLE).max(1);
    let sample = residuals.iter().step_by(stride);
    median(&mut sample.map(|residual| residual.cast_signed()).collect::<Vec<_>>())
}

/// Computes the residuals of all values.
fn residuals<T: SignedNumber>(
    values: &[T],
    run_lengths: &[u32],
    order: usize,
    steps: impl Fn(T) -> u64,
) -> Vec<u64> {
    let mut residuals = Vec::with_capacity(values.len());
    let mut differences = Differences::default();
    let mut rest = values;
    for length in run_lengths {
        let run;
        (run, rest) = rest.split_at(*length as usize);
        for (index, value) in run.iter().enumerate() {
            let number = steps(*value);
            residuals.push(match index {
                0 => differences.begin(number, order),
                _ => differences.residual(number, order.min(index)),
            });
        }
    }
    residuals
}

/// Appends the residuals and all that a reader needs. Returns `None` if their frequencies do not
/// fit.
fn write_residuals(residuals: &[u64], out: &mut Vec<u8>) -> Option<()> {
    let tokens: Vec<u8> = residuals.iter().map(|residual| token_of(*residual)).collect();
    let end = tokens.iter().max().map_or(0, |last| usize::from(*last) + 1);
    let finest = counts_of(&tokens, &FINEST);
    let ways = CONTEXTS.iter().enumerate().map(|(way, contexts)| {
        let counts = sums_of(&finest, contexts, end);
        (bits_of(&counts, end), way, counts)
    });
    let (_, way, counts) = ways.min_by(|a, b| a.0.total_cmp(&b.0))?;
    out.push(way.to_le_bytes()[0]);
    let frequencies = write_tables(&counts, out)?;
    let contexts = in_contexts(&tokens, &CONTEXTS[way]);
    let tokens_in_contexts: Vec<(u8, u8)> =
        contexts.map(|(token, context)| (token, context.to_le_bytes()[0])).collect();
    let mut packed = Vec::new();
    rans::pack(&tokens_in_contexts, &frequencies, &mut packed);
    put_len(out, packed.len() / 2 - rans::STATES_WORDS);
    out.append(&mut packed);
    let mut bits = BitWriter::default();
    for (residual, token) in residuals.iter().zip(&tokens) {
        let class = CLASSES[usize::from(*token)];
        bits.put(residual.wrapping_sub(class.first), class.bits);
    }
    put_bytes(&bits.finish(), out);
    Some(())
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Returns each token with its context.
fn in_contexts(tokens: &[u8], contexts: &Contexts) -> impl Iterator<Item = (u8, usize)> {
    let (mut before, mut earlier) = (0, 0);
    tokens.iter().map(move |token| {
        let context = contexts.of(before, earlier);
        (before, earlier) = (*token, before);
        (*token, context)
    })
}

/// Counts the tokens in each context.
fn counts_of(tokens: &[u8], contexts: &Contexts) -> Vec<TokenCounts> {
    let mut counts = vec![[0; TOKENS]; contexts.count];
    for (token, context) in in_contexts(tokens, contexts) {
        counts[context][usize::from(token)] += 1;
    }
    counts
}

/// Returns the counts of the tokens before `end` in each context, from the counts in the finest
/// contexts.
fn sums_of(finest: &[TokenCounts], contexts: &Contexts, end: usize) -> Vec<TokenCounts> {
    let mut sums = vec![[0; TOKENS]; contexts.count];
    for (counts, (before, earlier)) in finest.iter().zip(finest_pairs()) {
        let sums = &mut sums[contexts.of(before, earlier)];
        for (sum, count) in sums.iter_mut().zip(&counts[..end]) {
            *sum += count;
        }
    }
    sums
}

/// Estimated bits of the tokens, all of which are before `end`, and of the frequencies.
fn bits_of(counts: &[TokenCounts], end: usize) -> f64 {
    let of_context = |counts: &TokenCounts| {
        let counts = &counts[..end];
        let all = f64::from(counts.iter().sum::<u32>());
        let present = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count));
        let bits = present.map(|count| count * (all / count).log2());
        f64::from(Frequencies::table_bits(counts)) + bits.sum::<f64>()
    };
    counts.iter().map(of_context).sum()
}

/// Appends the frequencies in each context. Returns `None` if they do not fit.
fn write_tables(counts: &[TokenCounts], out: &mut Vec<u8>) -> Option<Vec<Option<Frequencies>>> {
    let mut tables = BitWriter::default();
    let mut all = Vec::with_capacity(counts.len());
    for counts in counts {
        let is_used = counts.iter().any(|count| *count > 0);
        tables.put(is_used.into(), 1);
        let frequencies = if is_used { Some(Frequencies::of_counts(counts)?) } else { None };
        if let Some(frequencies) = &frequencies {
            frequencies.write(&mut tables);
        }
        all.push(frequencies);
    }
    put_bytes(&tables.finish(), out);
    Some(all)
}
