//! Rows of the application's table of error codes.

use std::collections::HashMap;

/// The row of an error code in the application's table.
#[derive(Clone, Debug)]
pub struct ErrorRow {
    /// The status code.
    pub status: u16,
    /// The status code with its reason. Example: `429 Too Many Requests`.
    pub line: String,
    /// Header fields of the answer.
    pub fields: Vec<(String, String)>,
    /// Delay before the next attempt, unless the refusal has a delay.
    pub retry_seconds: Option<u64>,
}

/// Rows by error code.
pub type ErrorRows = HashMap<String, ErrorRow>;
