//! Bad input as data: a stable code and a location; the prose is made only for the answer.
//!
//! In an answer it is `{"type", "loc", "msg"}`, `loc` as in `["body", 3, "time"]`.

use super::limits::FAULT_NAME_CHARS_MAX;

/// Reason for which a value of a batch is not acceptable; `as_str` is the `type` of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCode {
    /// The body is not one JSON document in UTF-8, or nests too deep.
    JsonInvalid,
    /// The document is not an array.
    ListType,
    /// An element of the array is not an object.
    RecordType,
    /// A required key is absent.
    Missing,
    /// A string was expected.
    StringType,
    /// A string must not be empty.
    StringTooShort,
    /// A time is not a string.
    DatetimeType,
    /// A string is not a time.
    DatetimeParsing,
    /// An object was expected.
    DictType,
    /// A number does not fit a finite double.
    FiniteNumber,
    /// A field is neither boolean, number nor string.
    FieldValueType,
    /// A key occurs twice in one object.
    DuplicateKey,
    /// A line is not line protocol, or not UTF-8.
    LineInvalid,
    /// An integer was expected.
    IntParsing,
    /// An integer does not fit 64 bits with a sign.
    IntParsingSize,
    /// A record has no field.
    NoFields,
    /// A time is before 2000.
    TimeTooEarly,
    /// The content of tags refuses a record where it does not refuse the batch.
    TagsInvalid,
    /// The same of fields.
    FieldsInvalid,
    /// A field was written with another type before.
    TypeConflict,
}

impl FaultCode {
    /// All codes, for tests that must not miss one.
    pub const ALL: [Self; 20] = [
        Self::JsonInvalid,
        Self::ListType,
        Self::RecordType,
        Self::Missing,
        Self::StringType,
        Self::StringTooShort,
        Self::DatetimeType,
        Self::DatetimeParsing,
        Self::DictType,
        Self::FiniteNumber,
        Self::FieldValueType,
        Self::DuplicateKey,
        Self::LineInvalid,
        Self::IntParsing,
        Self::IntParsingSize,
        Self::NoFields,
        Self::TimeTooEarly,
        Self::TagsInvalid,
        Self::FieldsInvalid,
        Self::TypeConflict,
    ];

    /// The stable name, as in pydantic where it has one for this fault.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonInvalid => "json_invalid",
            Self::ListType => "list_type",
            Self::RecordType => "model_attributes_type",
            Self::Missing => "missing",
            Self::StringType => "string_type",
            Self::StringTooShort => "string_too_short",
            Self::DatetimeType => "datetime_type",
            Self::DatetimeParsing => "datetime_from_date_parsing",
            Self::DictType => "dict_type",
            Self::FiniteNumber => "finite_number",
            Self::FieldValueType => "field_value_type",
            Self::DuplicateKey => "duplicate_key",
            Self::LineInvalid => "line_invalid",
            Self::IntParsing => "int_parsing",
            Self::IntParsingSize => "int_parsing_size",
            Self::NoFields => "no_fields",
            Self::TimeTooEarly => "time_too_early",
            Self::TagsInvalid => "tags_invalid",
            Self::FieldsInvalid => "fields_invalid",
            Self::TypeConflict => "field_type_conflict",
        }
    }

    /// The sentence for people; clients branch on the code.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::JsonInvalid => "Body should be one JSON document in UTF-8",
            Self::ListType => "Body should be a JSON array of telemetry records",
            Self::RecordType => "Record should be a JSON object",
            Self::Missing => "Field required",
            Self::StringType => "Input should be a valid string",
            Self::StringTooShort => "String should have at least 1 character",
            Self::DatetimeType => "Input should be an ISO 8601 datetime in a string",
            Self::DatetimeParsing => {
                "Input should be an ISO 8601 datetime such as 2026-01-31T12:00:00Z"
            }
            Self::DictType => "Input should be a JSON object",
            Self::FiniteNumber => "Input should be a finite number",
            Self::FieldValueType => "Input should be a boolean, a number or a string",
            Self::DuplicateKey => "Key occurs more than once in its object",
            Self::LineInvalid => "Line should be line protocol in UTF-8",
            Self::IntParsing => "Input should be an integer",
            Self::IntParsingSize => "Integer should fit 64 bits with a sign",
            Self::NoFields => "Record should have a field",
            Self::TimeTooEarly => "Time should be 2000-01-01T00:00:00Z or later",
            Self::TagsInvalid => "Tags should have names, and be no more than limits.tags_max",
            Self::FieldsInvalid => "Fields should be no more than limits.fields_max",
            Self::TypeConflict => "Field was written with another type before",
        }
    }
}

/// One step of a location below `"body"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A byte offset into the document or the index of a record.
    Index(usize),
    /// A key, or its first [`FAULT_NAME_CHARS_MAX`] characters.
    Key(String),
}

impl Step {
    /// The step of a key: of a long one its beginning, since one name may be part of many faults.
    #[must_use]
    pub fn key(name: &str) -> Self {
        let end = name.char_indices().nth(FAULT_NAME_CHARS_MAX).map_or(name.len(), |(at, _)| at);
        Self::Key(name.get(..end).unwrap_or_default().to_owned())
    }
}

/// One fault and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Reason.
    pub code: FaultCode,
    /// Location below `"body"`: a record index and then keys, or a byte offset for `json_invalid`.
    pub loc: Vec<Step>,
}

/// Reason for which a whole batch is refused; nothing of it is written. The order is that of stages 9 to 13 in
/// `docs/contract.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Syntax or schema: 422 with a `detail` list of 1 to [`crate::model::limits::FAULTS_MAX`] faults.
    Faults(Vec<Fault>),
    /// Records of another protocol, of which none is to be written where one is faulty; the first of
    /// them, as [`crate::model::batch::Batch::dropped`] has them.
    Dropped(Vec<Fault>),
    /// More records than allowed: 413 `batch_too_large`.
    TooManyRecords {
        /// Elements of the array.
        received: usize,
        /// The bound.
        max: usize,
    },
    /// A content rule of the contract that names a field: 400 `invalid_input`, or
    /// `INVALID_ARGUMENT` `invalid_input:<field>`.
    InvalidInput {
        /// `tags` or `fields` over HTTP; `entity_id`, `measurement`, … as well over gRPC; `names` for
        /// a body that adds more names than [`crate::model::limits::BODY_NAMES_BYTES`] allows.
        field: &'static str,
    },
    /// The names that are new in the batch would take the tenant past a bound. It is answered as
    /// [`Self::InvalidInput`]; what was written before can be written again.
    TenantFull {
        /// The setting that has the bound.
        bound: &'static str,
    },
    /// A field was written with another type before, or earlier in this batch.
    TypeConflict {
        /// The first such field in array order, then key order.
        field: String,
    },
    /// The queue of acknowledged batches has no room: 503 `ingest_buffer_full`.
    BufferFull,
}

impl Refusal {
    /// The error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Faults(_) | Self::Dropped(_) => "schema_faults",
            Self::TooManyRecords { .. } => "batch_too_large",
            Self::InvalidInput { .. } | Self::TenantFull { .. } => "invalid_input",
            Self::TypeConflict { .. } => "field_type_conflict",
            Self::BufferFull => "ingest_buffer_full",
        }
    }

    /// The field that the answer names beside the code, if it names one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::InvalidInput { field } => Some(field),
            Self::TenantFull { bound: "tenant_fields_max" } => Some("fields"),
            Self::TenantFull { .. } => Some("tags"),
            Self::TypeConflict { field } => Some(field),
            Self::Faults(_) | Self::Dropped(_) | Self::TooManyRecords { .. } | Self::BufferFull => {
                None
            }
        }
    }
}
