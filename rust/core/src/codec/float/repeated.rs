//! Columns with few distinct doubles: a sorted dictionary, and the rank of each value in it.
//!
//! Example: `[2.5, 1.5, 2.5]` is the dictionary `[1.5, 2.5]` and the ranks `[1, 0, 1]`.

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::codec::EFFORT_COUNT_MIN;

/// A dictionary is tried if this many sampled values have at most so many distinct values.
const SAMPLE: usize = 64;
const SAMPLE_DISTINCT_MAX: usize = 44;

/// A dictionary needs at least this many values per entry to pay.
const VALUES_PER_ENTRY: usize = 4;

/// Returns the distinct values in their total order, and the rank of each value. Returns `None` if
/// there are too many distinct values.
pub(super) fn ranked(values: &[f64]) -> Option<(Vec<f64>, Vec<i32>)> {
    if values.len() < EFFORT_COUNT_MIN || distinct(sample(values)).len() > SAMPLE_DISTINCT_MAX {
        return None;
    }
    let entries_max = values.len() / VALUES_PER_ENTRY;
    let (mut entries, mut entry_of): (Vec<f64>, HashMap<u64, u32, RandomState>) =
        Default::default();
    let mut of_values: Vec<u32> = Vec::with_capacity(values.len());
    for value in values {
        let next = u32::try_from(entries.len()).ok()?;
        let entry = *entry_of.entry(value.to_bits()).or_insert(next);
        if entry == next {
            entries.push(*value);
        }
        if entries.len() > entries_max {
            return None;
        }
        of_values.push(entry);
    }
    let dictionary = distinct(entries.clone());
    let ranks: Vec<i32> =
        entries.iter().map(|entry| rank_of(&dictionary, *entry)).collect::<Option<_>>()?;
    let of_values = of_values.iter().map(|entry| ranks[*entry as usize]);
    Some((dictionary, of_values.collect()))
}

fn sample(values: &[f64]) -> Vec<f64> {
    values.iter().step_by(values.len().div_ceil(SAMPLE)).copied().collect()
}

/// Returns the distinct values in their total order.
fn distinct(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by(|a, b| a.total_cmp(b) == Ordering::Equal);
    values
}

fn rank_of(entries: &[f64], value: f64) -> Option<i32> {
    let rank = entries.binary_search_by(|entry| entry.total_cmp(&value)).ok()?;
    i32::try_from(rank).ok()
}
