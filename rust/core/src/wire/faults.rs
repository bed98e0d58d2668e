//! Faults of a batch, in the order in which they are reported.

use crate::model::fault::{Fault, FaultCode, Refusal, Step};
use crate::model::limits::{FAULTS_MAX, IMPORT_FAULTS_MAX};

/// Sorts after every offset of a document: for what is missing.
pub(super) const NOWHERE: usize = usize::MAX;

/// A bounded number of faults: by record, then by offset in the document, missing keys last.
pub(super) struct Faults {
    max: usize,
    /// Faults of one record.
    record_max: usize,
    done: Vec<Fault>,
    /// Faults of the current record with their offsets in the document.
    record: Vec<(usize, Fault)>,
    /// Index in `record` at which the current pass over the record began.
    pass_start: usize,
    /// Tells whether the content of some record's tags refuses the batch.
    pub(super) tags_refused: bool,
    /// Tells whether some record has too many fields.
    pub(super) fields_refused: bool,
}

impl Default for Faults {
    /// No faults yet, of which an answer will hold [`FAULTS_MAX`].
    fn default() -> Self {
        Self::new(FAULTS_MAX, FAULTS_MAX)
    }
}

impl Faults {
    /// No faults yet, of which the first of each record will be kept, for imports.
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
    /// Within one pass, faults come in document order, so those of a pass beyond the bound could not
    /// be among the first of the record.
    #[cold]
    pub(super) fn push(&mut self, at: usize, code: FaultCode, index: usize, keys: &[&str]) {
        if self.done.len() < self.max && self.record.len() - self.pass_start < self.record_max {
            let keys = keys.iter().map(|&key| Step::key(key));
            let loc = std::iter::once(Step::Index(index)).chain(keys).collect();
            self.record.push((at, Fault { code, loc }));
        }
    }

    /// Starts a second pass over parts of the record.
    #[inline]
    pub(super) fn next_pass(&mut self) {
        self.pass_start = self.record.len();
    }

    /// Tells whether no record has had a fault so far.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.done.is_empty() && self.record.is_empty()
    }

    /// Tells whether nothing refuses the batch so far.
    #[inline]
    pub(super) fn refuse_nothing(&self) -> bool {
        self.are_none() && !self.tags_refused && !self.fields_refused
    }

    /// Refuses a batch of `received` records for the first of its reasons.
    ///
    /// # Errors
    /// In this order: [`Refusal::TooManyRecords`], [`Refusal::Faults`], and
    /// [`Refusal::InvalidInput`] for tags, then for fields.
    pub(super) fn check(self, received: usize, max: usize) -> Result<(), Refusal> {
        if received > max {
            return Err(Refusal::TooManyRecords { received, max });
        }
        if !self.are_none() {
            return Err(Refusal::Faults(self.done));
        }
        let refused = [("tags", self.tags_refused), ("fields", self.fields_refused)];
        match refused.into_iter().find(|(_, is_refused)| *is_refused) {
            Some((field, _)) => Err(Refusal::InvalidInput { field }),
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

    /// Takes out the first fault of the current record, if it has any, which is forgotten then.
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
        first.unwrap_or(Fault { code: of_content, loc: vec![Step::Index(0)] })
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
