//! Batches with known content, and the rows of them that a plane must show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use fleetcast_faults::model::aggregate::{Aggregation, Interval};
use fleetcast_faults::model::time::{SECOND_NS, write_rfc3339};
use fleetcast_faults::plane::{Extent, Plane};
use fleetcast_faults::query::{AnswerBounds, SeriesAnswer, SeriesQuery};

const DAY_NS: i64 = 86_400 * SECOND_NS;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
/// The first instant of a day.
const START_NS: i64 = 1_789_948_800 * SECOND_NS;
/// The end of the last day that has rows. The segments of this day are merged. The other days are
/// over and share one segment, of which retention keeps a part.
pub(crate) const NOW_NS: i64 = START_NS + 3 * DAY_NS - SECOND_NS;
const ENTITIES: usize = 5;
const DAYS: u32 = 3;
/// One batch in so many is large.
const LARGE_EACH: u32 = 11;
/// Keeps all days except the first.
pub(crate) const RETENTION_SECONDS: u64 = 2 * 86_400 - 1;
/// Keeps the hours of all days.
pub(crate) const HOURS_SECONDS: u64 = 30 * 86_400;

/// Fate of a batch or of the retention, as far as a client may rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The plane exists from now on.
    Created,
    /// The batch may be stored from now on, whole.
    Begun(u32),
    /// The batch is stored.
    Acknowledged(u32),
    /// The batch is stored, because a read has shown it.
    Shown(u32),
    /// The batch is not stored, and never will be.
    Refused(u32),
    /// The batch may be deleted from now on, whole.
    DeleteBegun(u32),
    /// The batch is deleted.
    Deleted(u32),
    /// The first day may be hidden from now on.
    RetentionBegun,
    /// The first day is hidden.
    RetentionSet,
    /// The hours of the first day outlive its rows.
    HoursKept,
}

/// Rows and settings that a plane must show.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Expected {
    is_created: bool,
    begun: BTreeSet<u32>,
    refused: BTreeSet<u32>,
    acknowledged: BTreeSet<u32>,
    may_be_deleted: BTreeSet<u32>,
    deleted: BTreeSet<u32>,
    first_day: FirstDay,
    are_hours_kept: bool,
}

/// Fate of the rows of the first day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FirstDay {
    #[default]
    Shown,
    PerhapsHidden,
    Hidden,
}

/// Faults that were found in a plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) lost: Vec<u32>,
    pub(crate) partly_visible: Vec<u32>,
    /// Batches that are shown although they were refused, never written, deleted, or hidden by
    /// retention.
    pub(crate) false_rows: Vec<u32>,
    pub(crate) unreadable: Vec<String>,
    /// Batches that are shown, which is not a fault.
    pub(crate) shown: BTreeSet<u32>,
}

impl Verdict {
    pub(crate) fn is_clean(&self) -> bool {
        let Self { lost, partly_visible, false_rows, unreadable, .. } = self;
        [lost, partly_visible, false_rows].iter().all(|batches| batches.is_empty())
            && unreadable.is_empty()
    }
}

impl Expected {
    pub(crate) fn note(&mut self, event: Event) {
        match event {
            Event::Created => self.is_created = true,
            Event::Begun(batch) => {
                self.begun.insert(batch);
            }
            Event::Acknowledged(batch) | Event::Shown(batch) => {
                self.acknowledged.insert(batch);
            }
            Event::Refused(batch) => {
                self.begun.remove(&batch);
                self.refused.insert(batch);
            }
            Event::DeleteBegun(batch) => {
                self.may_be_deleted.insert(batch);
            }
            Event::Deleted(batch) => {
                self.deleted.insert(batch);
            }
            Event::RetentionBegun => self.first_day = self.first_day.max(FirstDay::PerhapsHidden),
            Event::RetentionSet => self.first_day = FirstDay::Hidden,
            Event::HoursKept => self.are_hours_kept = true,
        }
    }

    pub(crate) fn is_created(&self) -> bool {
        self.is_created
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    /// Returns the batches that may or may not be stored.
    pub(crate) fn in_doubt(&self) -> Vec<u32> {
        self.begun.difference(&self.acknowledged).copied().collect()
    }

    /// Returns a number that no batch has, stored or not.
    pub(crate) fn next_batch(&self) -> u32 {
        self.begun.union(&self.refused).max().map_or(0, |last| last + 1)
    }

    /// Reads everything in the plane, and judges it.
    pub(crate) fn judge(&self, plane: &Plane) -> Verdict {
        let mut verdict = Verdict::default();
        match self.read(plane, &mut verdict) {
            Ok(()) => {}
            Err(problem) => verdict.unreadable.push(problem),
        }
        verdict
    }

    fn read(&self, plane: &Plane, verdict: &mut Verdict) -> Result<(), String> {
        let failed = |error: fleetcast_faults::model::error::Error| error.to_string();
        let raw = plane.series(query(None), AnswerBounds::NONE, NOW_NS).map_err(failed)?;
        let mut found: BTreeMap<u32, u32> = BTreeMap::new();
        for batch in batches_of(&raw) {
            *found.entry(batch).or_default() += 1;
        }
        verdict.shown = found.keys().copied().collect();
        for (batch, rows) in &found {
            let is_hidden = self.deleted.contains(batch)
                || self.first_day == FirstDay::Hidden && is_old(*batch);
            if !self.begun.contains(batch) || is_hidden {
                verdict.false_rows.push(*batch);
            } else if *rows != row_count(*batch) {
                verdict.partly_visible.push(*batch);
            }
        }
        let may_hide = |batch| {
            self.may_be_deleted.contains(&batch)
                || self.first_day > FirstDay::Shown && is_old(batch)
        };
        let lost = self
            .acknowledged
            .iter()
            .filter(|batch| !found.contains_key(*batch) && !may_hide(**batch));
        verdict.lost.extend(lost);
        let stats = plane.stats().map_err(failed)?;
        if self.first_day == FirstDay::Shown && self.may_be_deleted.is_empty() {
            let rows: u64 = found.values().map(|rows| u64::from(*rows)).sum();
            let counted = (stats.counts.batches, stats.counts.rows, stats.stored_rows);
            if counted != (found.len() as u64, rows, rows) {
                verdict
                    .unreadable
                    .push(format!("counted {counted:?}, found {}, {rows}", found.len()));
            }
        }
        let windows = Some((Interval::OneHour, Aggregation::Max));
        let hourly = plane.series(query(windows), AnswerBounds::NONE, NOW_NS).map_err(failed)?;
        let (mut maxima, mut of_rows) = (hourly_maxima(&hourly), hourly_maxima(&raw));
        if self.first_day > FirstDay::Shown {
            of_rows.retain(|(_, hour), _| !is_of_first_day(*hour));
            let kept = maxima.extract_if(.., |(_, hour), _| is_of_first_day(*hour)).collect();
            self.judge_kept(&kept, verdict);
        }
        if maxima != of_rows {
            verdict.unreadable.push("hourly maxima differ from the rows".to_owned());
        }
        let newest = plane.answer_latest(Some(NOW_NS), NOW_NS, None, NOW_NS);
        let newest = newest.map_err(|error| format!("{error:?}"))?;
        if newest_by_entity(&newest) != newest_of(&raw) {
            verdict.unreadable.push("newest samples differ from the rows".to_owned());
        }
        Ok(())
    }

    /// Judges the hourly maxima of the first day, whose rows may have expired.
    fn judge_kept(&self, kept: &BTreeMap<(usize, i64), u32>, verdict: &mut Verdict) {
        if !self.are_hours_kept {
            return;
        }
        let hour_of = |batch: u32| (batch as usize % ENTITIES, first_ns(batch).div_euclid(HOUR_NS));
        let is_shown = |batch: &u32| kept.get(&hour_of(*batch)).is_some_and(|max| *max >= *batch);
        let stays = |batch: &u32| is_old(*batch) && !self.may_be_deleted.contains(batch);
        let lost = self.acknowledged.iter().filter(|batch| stays(batch) && !is_shown(batch));
        verdict.lost.extend(lost);
        let is_false = |(hour, batch): (&(usize, i64), &u32)| {
            !self.begun.contains(batch) || hour_of(*batch) != *hour
        };
        verdict.false_rows.extend(kept.iter().filter(|of| is_false(*of)).map(|(_, batch)| *batch));
    }
}

/// Returns the next large batch from `batch` on. Example: from batch 3 on, this is batch 10.
pub(crate) fn next_large(batch: u32) -> u32 {
    batch + (LARGE_EACH - 1 - batch % LARGE_EACH)
}

/// Returns the number of rows of a batch. Most batches are small, and some fill several pages.
fn row_count(batch: u32) -> u32 {
    if batch % LARGE_EACH == LARGE_EACH - 1 { 400 } else { 1 + batch * 7 % 40 }
}

fn day_of(batch: u32) -> u32 {
    batch % DAYS
}

fn is_of_first_day(hour: i64) -> bool {
    hour < (START_NS + DAY_NS).div_euclid(HOUR_NS)
}

fn is_old(batch: u32) -> bool {
    day_of(batch) == 0
}

/// Returns an extent with the rows of a batch and no other rows.
pub(crate) fn extent(batch: u32) -> Extent {
    let first_ns = first_ns(batch);
    Extent::new(first_ns..first_ns + 60 * SECOND_NS, None, Some(vec![entity_of(batch)])).unwrap()
}

/// Returns the first instant of a batch: a minute of its day that no other batch has. A day has
/// enough minutes for all.
fn first_ns(batch: u32) -> i64 {
    START_NS + i64::from(day_of(batch)) * DAY_NS + i64::from(batch / DAYS) * 60 * SECOND_NS
}

/// Returns the body of a batch. Every third batch brings a new series.
pub(crate) fn body(batch: u32) -> Vec<u8> {
    let mut out = String::from("[");
    let first_ns = first_ns(batch);
    for row in 0..row_count(batch) {
        let mut time = Vec::new();
        write_rfc3339(&mut time, first_ns + i64::from(row) * SECOND_NS / 10);
        let (time, entity) = (String::from_utf8(time).unwrap(), entity_of(batch));
        let site = batch / 3 % 7;
        let noise = f64::from(batch * 7_919 + row * 104_729 % 10_007) / 7.0;
        let comma = if row == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"measurement":"link","time":"{time}",
            "tags":{{"entity_id":"{entity}","site":"{site}"}},
            "fields":{{"batch":{batch},"noise":{noise}}}}}"#
        )
        .unwrap();
    }
    out.push(']');
    out.into_bytes()
}

fn entity_of(batch: u32) -> String {
    format!("e{}", batch as usize % ENTITIES)
}

fn query(windows: Option<(Interval, Aggregation)>) -> SeriesQuery {
    SeriesQuery {
        entity_ids: (0..ENTITIES).map(|entity| format!("e{entity}")).collect(),
        start_ns: START_NS,
        end_ns: NOW_NS,
        measurement: "link".to_owned(),
        fields: vec!["batch".to_owned()],
        windows,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small whole numbers")]
fn number(value: f64) -> u32 {
    value as u32
}

/// Returns the batch of each row.
fn batches_of(answer: &SeriesAnswer) -> impl Iterator<Item = u32> {
    let values = answer
        .entities
        .iter()
        .flat_map(|entity| entity.channels.iter().flat_map(|channel| &channel.values));
    values.map(|value| number(*value))
}

fn hourly_maxima(answer: &SeriesAnswer) -> BTreeMap<(usize, i64), u32> {
    let mut maxima = BTreeMap::new();
    for (entity, rows) in answer.entities.iter().enumerate() {
        let values = rows.channels.iter().flat_map(|channel| &channel.values);
        for (time_ns, value) in rows.times_ns.iter().zip(values) {
            let max = maxima.entry((entity, time_ns.div_euclid(HOUR_NS))).or_default();
            *max = number(*value).max(*max);
        }
    }
    maxima
}

fn newest_of(raw: &SeriesAnswer) -> BTreeMap<String, u32> {
    let newest = raw.query.entity_ids.iter().zip(&raw.entities).filter_map(|(id, rows)| {
        Some((id.clone(), number(*rows.channels.first()?.values.last()?)))
    });
    newest.collect()
}

fn newest_by_entity(json: &[u8]) -> BTreeMap<String, u32> {
    let answer: serde_json::Value = serde_json::from_slice(json).unwrap();
    let entities = answer["entities"].as_array().unwrap().iter();
    let pair = |entity: &serde_json::Value| {
        let batch = entity["fields"]["batch"].as_f64().unwrap();
        (entity["entity_id"].as_str().unwrap().to_owned(), number(batch))
    };
    entities.map(pair).collect()
}
