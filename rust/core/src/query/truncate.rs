//! Cuts the rows of all entities at one instant, so that an answer keeps its bounds.
//!
//! Example: two entities each have a row at 1 s, 2 s and 3 s, and `points_max` is 5. The answer
//! keeps the four rows at 1 s and 2 s, and the next read starts at 3 s.

use super::limits::AnswerBounds;
use super::rows::{Channel, EntityRows};

/// Cuts all entities at the latest instant before which their rows keep `bounds` (H23, N4). Returns
/// that instant, or `None` if all rows keep the bounds.
///
/// The rows of the first instant are always answered. If they alone exceed the bounds, some of them
/// are left out. If they exceed only `values_max`, the first row of each entity remains (H25).
///
/// # Panics
/// Panics if `points_max` is 0.
pub fn truncate(entities: &mut [EntityRows], bounds: AnswerBounds) -> Option<i64> {
    assert!(bounds.points_max > 0, "an answer has room for a point");
    let widths: Vec<Width> = entities.iter().map(Width::of).collect();
    let fits = |rows_of: &dyn Fn(&EntityRows) -> usize| {
        let (mut points, mut values) = (0_usize, 0_usize);
        for (entity, width) in entities.iter().zip(&widths) {
            let rows = rows_of(entity);
            points += rows;
            values = values.saturating_add(width.values(rows));
        }
        points <= bounds.points_max && values <= bounds.values_max
    };
    if fits(&|entity| entity.times_ns.len()) {
        return None;
    }
    let mut instants_ns: Vec<i64> =
        entities.iter().flat_map(|entity| &entity.times_ns).copied().collect();
    instants_ns.sort_unstable();
    instants_ns.dedup();
    let before = |entity: &EntityRows, end_ns: i64| {
        entity.times_ns.partition_point(|time_ns| *time_ns < end_ns)
    };
    // A cut at this instant fits, and every later cut does not.
    let fitting = instants_ns.partition_point(|end_ns| fits(&|entity| before(entity, *end_ns)));
    if fitting > 1 {
        let cut_ns = instants_ns[fitting - 1];
        for entity in entities {
            entity.truncate(before(entity, cut_ns));
        }
        return Some(cut_ns);
    }
    let left_out = truncate_to_instant(entities, &widths, instants_ns[0], bounds);
    // Rows that were left out cannot be read later. Otherwise the next read starts at the next
    // instant.
    let after_ns = instants_ns[0].saturating_add(1);
    if left_out { Some(after_ns) } else { instants_ns.get(1).copied() }
}

/// Keeps only rows of the first instant: first one row per entity within `points_max`, then further
/// rows within both bounds. Returns true if rows of this instant are left out.
fn truncate_to_instant(
    entities: &mut [EntityRows],
    widths: &[Width],
    instant_ns: i64,
    bounds: AnswerBounds,
) -> bool {
    let rows_of_instant =
        |entity: &EntityRows| entity.times_ns.partition_point(|time_ns| *time_ns == instant_ns);
    let (mut points_left, mut values_left) = (bounds.points_max, bounds.values_max);
    let mut kept = vec![0; entities.len()];
    for ((kept, entity), width) in kept.iter_mut().zip(&*entities).zip(widths) {
        *kept = rows_of_instant(entity).min(1).min(points_left);
        points_left -= *kept;
        values_left = values_left.saturating_sub(width.values(*kept));
    }
    let mut left_out = false;
    for ((kept, entity), width) in kept.into_iter().zip(entities).zip(widths) {
        let of_instant = rows_of_instant(entity);
        let more_values = |rows: usize| width.values(rows) - width.values(kept);
        let further = (kept + 1..=of_instant.min(kept + points_left))
            .take_while(|rows| more_values(*rows) <= values_left)
            .count();
        points_left -= further;
        values_left -= more_values(kept + further);
        left_out |= kept + further < of_instant;
        entity.truncate(kept + further);
    }
    left_out
}

/// Number of channels in the first rows of an entity.
struct Width {
    /// The first row of each channel, ascending.
    first_rows: Vec<usize>,
}

impl Width {
    fn of(entity: &EntityRows) -> Self {
        let first = |channel: &Channel| channel.rows.row_at(0);
        let mut first_rows: Vec<usize> = entity.channels.iter().map(first).collect();
        first_rows.sort_unstable();
        Self { first_rows }
    }

    /// Returns the number of values in the first `rows` rows, with times and nulls.
    fn values(&self, rows: usize) -> usize {
        let channels = self.first_rows.partition_point(|first| *first < rows);
        rows.saturating_mul(1 + channels)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::batch::RowSet;

    /// A row: its time, and the fields that have a value.
    type Row = (i64, Vec<u32>);

    fn entity(rows: &[Row]) -> EntityRows {
        let times_ns = rows.iter().map(|row| row.0).collect();
        let mut fields: Vec<u32> = rows.iter().flat_map(|row| row.1.clone()).collect();
        fields.sort_unstable();
        fields.dedup();
        let channel = |field: u32| {
            let present = (0_u32..).zip(rows).filter(|(_, row)| row.1.contains(&field));
            let present: Vec<u32> = present.map(|(at, _)| at).collect();
            let values = present.iter().map(|row| f64::from(*row)).collect();
            let rows =
                if present.len() == rows.len() { RowSet::All } else { RowSet::Some(present) };
            Channel { field, rows, values }
        };
        EntityRows { times_ns, channels: fields.into_iter().map(channel).collect() }
    }

    /// Counts the values of an answer, cell by cell.
    fn values(entities: &[Vec<Row>]) -> usize {
        let of = |rows: &Vec<Row>| {
            let fields: std::collections::BTreeSet<u32> =
                rows.iter().flat_map(|row| row.1.iter().copied()).collect();
            rows.iter().map(|_| 1 + fields.len()).sum::<usize>()
        };
        entities.iter().map(of).sum()
    }

    fn kept(entities: &[Vec<Row>], keep: impl Fn(i64) -> bool) -> Vec<Vec<Row>> {
        let of = |rows: &Vec<Row>| rows.iter().filter(|row| keep(row.0)).cloned().collect();
        entities.iter().map(of).collect()
    }

    fn entities() -> impl Strategy<Value = Vec<Vec<Row>>> {
        let fields = proptest::collection::btree_set(0_u32..6, 1..4);
        let row = (0_i64..12, fields).prop_map(|(at, fields)| (at, fields.into_iter().collect()));
        let rows = proptest::collection::vec(row, 0..12).prop_map(|mut rows: Vec<Row>| {
            rows.sort_by_key(|row| row.0);
            rows
        });
        proptest::collection::vec(rows, 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn h23_n4_the_cut_is_the_latest_that_keeps_both_bounds(
            rows in entities(),
            points_max in 1_usize..30,
            values_max in 1_usize..80,
        ) {
            let fits = |rows: &[Vec<Row>]| {
                rows.iter().map(Vec::len).sum::<usize>() <= points_max && values(rows) <= values_max
            };
            let mut found: Vec<EntityRows> = rows.iter().map(|rows| entity(rows)).collect();
            let cut_ns = truncate(&mut found, AnswerBounds { points_max, values_max });
            let mut instants: Vec<i64> = rows.iter().flatten().map(|row| row.0).collect();
            instants.sort_unstable();
            instants.dedup();
            let latest = instants.iter().rfind(|end| fits(&kept(&rows, |time| time < **end)));
            if fits(&rows) {
                prop_assert_eq!(cut_ns, None);
                prop_assert_eq!(found, rows.iter().map(|rows| entity(rows)).collect::<Vec<_>>());
            } else if latest.is_some_and(|latest| *latest > instants[0]) {
                prop_assert_eq!(cut_ns, latest.copied());
                let expected = kept(&rows, |time| time < *latest.unwrap());
                prop_assert_eq!(found, expected.iter().map(|rows| entity(rows)).collect::<Vec<_>>());
            } else {
                // Only the first instant remains: some of its rows, as many as the bounds allow.
                let points: usize = found.iter().map(|entity| entity.times_ns.len()).sum();
                prop_assert!((1..=points_max).contains(&points));
                let answered: Vec<Vec<Row>> = found.iter().zip(&rows)
                    .map(|(found, rows)| rows[..found.times_ns.len()].to_vec())
                    .collect();
                let first_rows_alone = answered.iter().all(|rows| rows.len() <= 1);
                prop_assert!(values(&answered) <= values_max || first_rows_alone);
                let mut left_out = false;
                for (found, rows) in found.iter().zip(&kept(&rows, |time| time == instants[0])) {
                    let count = found.times_ns.len();
                    prop_assert_eq!(found, &entity(&rows[..count]));
                    prop_assert!(count > 0 || rows.is_empty() || points == points_max);
                    left_out |= count < rows.len();
                }
                let next = if left_out { Some(&(instants[0] + 1)) } else { instants.get(1) };
                prop_assert_eq!(cut_ns, next.copied());
            }
        }
    }

    fn times(entities: &[EntityRows]) -> Vec<&[i64]> {
        entities.iter().map(|rows| rows.times_ns.as_slice()).collect()
    }

    fn narrow(times: &[i64]) -> EntityRows {
        entity(&times.iter().map(|time| (*time, vec![1])).collect::<Vec<_>>())
    }

    const FOUR_POINTS: AnswerBounds = AnswerBounds { points_max: 4, values_max: usize::MAX };

    #[test]
    fn h23_one_cut_for_all_entities_never_splits_an_instant() {
        let mut rows = [narrow(&[1, 2, 3, 3]), narrow(&[2, 3, 9])];
        assert_eq!(truncate(&mut rows, FOUR_POINTS), Some(3));
        assert_eq!(times(&rows), [&[1, 2][..], &[2][..]]);
    }

    #[test]
    fn h25_an_instant_over_the_budget_alone_still_makes_progress() {
        let mut rows = [narrow(&[5, 5, 5]), narrow(&[5, 5, 6])];
        assert_eq!(truncate(&mut rows, FOUR_POINTS), Some(6));
        assert_eq!(times(&rows), [&[5, 5, 5][..], &[5][..]]);
    }

    #[test]
    fn n4_wide_rows_of_one_instant_are_answered_whole() {
        let wide = || entity(&[(5, (0..9).collect()), (8, vec![0])]);
        let mut rows = [wide(), wide()];
        let bounds = AnswerBounds { points_max: 100, values_max: 10 };
        assert_eq!(truncate(&mut rows, bounds), Some(8));
        assert_eq!(times(&rows), [&[5][..], &[5][..]]);
        // No rows follow, and no rows were left out.
        assert_eq!(truncate(&mut rows, bounds), None);
        assert_eq!(times(&rows), [&[5][..], &[5][..]]);
    }

    #[test]
    fn n4_a_second_row_of_an_instant_must_leave_room_for_the_first_rows_of_others() {
        let mut rows =
            [entity(&[(5, vec![0, 1, 2]), (5, vec![0, 1, 2])]), entity(&[(5, vec![0, 1])])];
        let bounds = AnswerBounds { points_max: 100, values_max: 10 };
        assert_eq!(truncate(&mut rows, bounds), Some(6));
        assert_eq!(times(&rows), [&[5][..], &[5][..]]);
    }

    #[test]
    fn h9_a_channel_without_a_value_before_the_cut_is_left_out() {
        let mut rows = [entity(&[(1, vec![0]), (2, vec![0]), (3, vec![0, 1])])];
        let bounds = AnswerBounds { points_max: 2, values_max: usize::MAX };
        assert_eq!(truncate(&mut rows, bounds), Some(3));
        assert_eq!(rows, [entity(&[(1, vec![0]), (2, vec![0])])]);
    }
}
