//! The batch that is built from the records of a body.

use crate::model::batch::ParseResult;
use crate::model::fault::BatchRefusal;
use crate::model::limits::{BLOCK_ROWS_MAX, WriteLimits};

use super::columns::Columns;
use super::series::SeriesFinder;
use super::tag_template::TagsTemplates;
use crate::wire::ParseContext;

/// Rows and series of a batch while its body is read, and the rules of its tenant.
pub(super) struct BatchBuilder<'c> {
    pub(super) limits: &'c WriteLimits,
    pub(super) tenant_key: &'c str,
    pub(super) columns: Columns,
    pub(super) series: SeriesFinder<'c>,
    pub(super) tags: TagsTemplates,
}

impl<'c> BatchBuilder<'c> {
    /// Returns an empty batch of a `format`, see [`SeriesFinder::new`].
    ///
    /// # Panics
    /// Panics if `context.limits.batch_records_max` exceeds [`BLOCK_ROWS_MAX`].
    pub(super) fn new(format: u8, context: ParseContext<'c>) -> Self {
        let ParseContext { raw_keys, limits, tenant_key, ingest_ns, names_bytes_max } = context;
        assert!(limits.batch_records_max <= BLOCK_ROWS_MAX, "a batch must fit one block");
        let columns = Columns::new(ingest_ns, limits, names_bytes_max);
        let series = SeriesFinder::new(format, raw_keys, names_bytes_max);
        Self { limits, tenant_key, columns, series, tags: TagsTemplates::default() }
    }

    /// Returns the batch that was read.
    ///
    /// # Errors
    /// Returns [`BatchRefusal::InvalidInput`] for `names` if the new names are too long.
    pub(super) fn finish(self) -> ParseResult {
        if self.series.is_full() || self.columns.has_excess_names() {
            return Err(BatchRefusal::InvalidInput { field: "names" });
        }
        Ok(self.columns.finish(self.series.into_new()))
    }
}
