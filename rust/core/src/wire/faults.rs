//! Faults of a batch, in the order in which they are reported.

use crate::model::fault::{BatchRefusal, Fault, FaultCode, LocationStep};
use crate::model::limits::{FAULTS_MAX, IMPORT_FAULTS_MAX};

/// Sorts after every offset of a document: the offset of missing keys.
pub(super) const NOWHERE: usize = usize::MAX;

/// A bounded number of faults: by record, then by offset in the document, missing keys last.
pub(super) struct Faults {
    max: usize,
    /// Greatest number of faults of a record.
    record_max: usize,
    done: Vec<Fault>,
    /// Faults of the current record with their offsets in the document.
    record: Vec<(usize, Fault)>,
    /// Index in `record` at which the current pass over the record began.
    pass_start: usize,
    /// If true, the tags of some record refuse the batch.
    pub(super) tags_refused: bool,
    /// If true, some record has too many fields.
    pub(super) fields_refused: bool,
}

impl Default for Faults {
    /// Returns an empty list for an answer with at most [`FAULTS_MAX`] faults.
    fn default() -> Self {
        Self::new(FAULTS_MAX, FAULTS_MAX)
    }
}

impl Faults {
    /// Returns an empty list for an import, which keeps the first fault of each record.
    pub(super) const fn of_import() -> Self {
        Self::new(IMPORT_FAULTS_MAX, 1)
    }

    const fn new(max: usize, record_max: usize) -> Self {
        Self {
            max,
            record_max,
            done: Vec::new(),
            record: Vec::new(),
            pass_start: 0,
            tags_refused: false,
            fields_refused: false,
        }
    }

    /// Notes a fault of record `index` at the byte `at`, located by `keys` inside the record.
    ///
    /// Within a pass, faults come in document order. Faults after the bound of a pass can therefore
    /// not be among the first faults of the record.
    #[cold]
    pub(super) fn push(&mut self, at: usize, code: FaultCode, index: usize, keys: &[&str]) {
        if self.done.len() < self.max && self.record.len() - self.pass_start < self.record_max {
            let keys = keys.iter().map(|&key| LocationStep::key(key));
            let loc = std::iter::once(LocationStep::Index(index)).chain(keys).collect();
            self.record.push((at, Fault { code, loc }));
        }
    }

    /// Starts a second pass over parts of the record.
    #[inline]
    pub(super) fn next_pass(&mut self) {
        self.pass_start = self.record.len();
    }

    /// Returns true if no record has had a fault so far.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.done.is_empty() && self.record.is_empty()
    }

    /// Returns true if the batch is not refused so far.
    #[inline]
    pub(super) fn refuse_nothing(&self) -> bool {
        self.are_none() && !self.tags_refused && !self.fields_refused
    }

    /// Refuses a batch of `received` records for its first reason.
    ///
    /// # Errors
    /// Returns the first that applies: [`BatchRefusal::TooManyRecords`], [`BatchRefusal::Faults`],
    /// [`BatchRefusal::InvalidInput`] for tags, or [`BatchRefusal::InvalidInput`] for fields.
    pub(super) fn check(self, received: usize, max: usize) -> Result<(), BatchRefusal> {
        if received > max {
            return Err(BatchRefusal::TooManyRecords { received, max });
        }
        if !self.are_none() {
            return Err(BatchRefusal::Faults(self.done));
        }
        let refused = [("tags", self.tags_refused), ("fields", self.fields_refused)];
        match refused.into_iter().find(|(_, is_refused)| *is_refused) {
            Some((field, _)) => Err(BatchRefusal::InvalidInput { field }),
            None => Ok(()),
        }
    }

    #[inline]
    pub(super) fn end_record(&mut self) {
        if !self.record.is_empty() {
            self.record.sort_by_key(|(at, _)| *at);
            let room = (self.max - self.done.len()).min(self.record_max);
            self.done.extend(self.record.drain(..).map(|(_, fault)| fault).take(room));
        }
        self.pass_start = 0;
    }

    /// Removes the first fault of the current record, if there is one, and returns it. Forgets the
    /// others.
    #[inline]
    pub(super) fn take_record(&mut self) -> Option<Fault> {
        if self.refuse_nothing() {
            self.pass_start = 0;
            return None;
        }
        Some(self.take_faulty_record())
    }

    #[cold]
    fn take_faulty_record(&mut self) -> Fault {
        self.record.sort_by_key(|(at, _)| *at);
        let first = self.record.drain(..).next().map(|(_, fault)| fault);
        let of_content =
            if self.tags_refused { FaultCode::TagsInvalid } else { FaultCode::FieldsInvalid };
        (self.tags_refused, self.fields_refused, self.pass_start) = (false, false, 0);
        first.unwrap_or(Fault { code: of_content, loc: vec![LocationStep::Index(0)] })
    }

    /// Forgets the faults of the current record.
    #[cold]
    pub(super) fn forget_record(&mut self) {
        self.record.clear();
        self.pass_start = 0;
    }

    pub(super) fn into_list(self) -> Vec<Fault> {
        self.done
    }
}
