//! Bounds of one question.

use std::cell::Cell;
use std::time::{Duration, Instant};

use fleetcast_core::query::labelled::{LabelBounds, LabelRefusal, Labels, label_bytes};

use crate::refusal::{EvaluationResult, passed};

/// Bytes of labels and of messages that count as one sample, as in [`LabelBounds`].
const SAMPLE_BYTES: usize = 16;

/// Samples and time that a question has left. Samples of the store, values at steps and labels that
/// the question makes count.
pub(crate) struct SampleBudget {
    samples: Cell<usize>,
    until: Instant,
}

impl SampleBudget {
    pub(crate) fn new(samples_max: usize, time_max: Duration) -> Self {
        Self { samples: Cell::new(samples_max), until: Instant::now() + time_max }
    }

    /// Returns the bounds of a read.
    pub(crate) fn of_read(&self) -> LabelBounds {
        LabelBounds { samples_max: self.samples.get(), until: self.until }
    }

    /// Takes samples, and checks the time.
    ///
    /// # Errors
    /// Returns the refusal of a question that passed a bound.
    pub(crate) fn take(&self, samples: usize) -> EvaluationResult<()> {
        let left = self.samples.get().checked_sub(samples);
        self.samples.set(left.ok_or_else(|| passed(LabelRefusal::TooManySamples))?);
        self.check_time()
    }

    /// Takes the samples as which so many bytes of labels or of a message count. Call it before they
    /// are made.
    ///
    /// # Errors
    /// Returns the errors of [`Self::take`].
    pub(crate) fn take_bytes(&self, bytes: usize) -> EvaluationResult<()> {
        self.take(bytes / SAMPLE_BYTES)
    }

    /// Takes the samples as which a series counts: its labels, and its samples or values at steps.
    ///
    /// # Errors
    /// Returns the errors of [`Self::take`].
    pub(crate) fn take_series(&self, labels: &Labels, samples: usize) -> EvaluationResult<()> {
        self.take(samples.saturating_add(label_bytes(labels) / SAMPLE_BYTES))
    }

    /// Returns an error if the time is over.
    pub(crate) fn check_time(&self) -> EvaluationResult<()> {
        if Instant::now() > self.until { Err(passed(LabelRefusal::TooLate)) } else { Ok(()) }
    }
}
