//! Bad input as data: a stable code and a location. The sentence is made only for the answer.
//!
//! Example: a record without a time is `{"type": "missing", "loc": ["body", 3, "time"], "msg": …}`
//! in the answer, if it is the fourth of the batch.

use super::limits::FAULT_NAME_CHARS_MAX;

/// The reason that a value of a batch is not acceptable. [`Self::as_str`] is the `type` in the
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCode {
    /// The body is not one JSON document in UTF-8, or is nested too deeply.
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
    /// A rule for the content of tags refuses a record, and the protocol refuses records
    /// individually.
    TagsInvalid,
    /// A rule for the content of fields refuses a record, and the protocol refuses records
    /// individually.
    FieldsInvalid,
    /// A field already has another type.
    TypeConflict,
}

impl FaultCode {
    /// All codes, for tests that must cover every code.
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

    /// Returns the stable name of the fault. The name is pydantic's if pydantic has this fault.
    ///
    /// Example: [`Self::FiniteNumber`] is `finite_number`.
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

    /// Returns the sentence for people. Clients branch on the code instead.
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

/// One step of a location, below `"body"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationStep {
    /// A byte offset into the document or the index of a record.
    Index(usize),
    /// A key, or its first [`FAULT_NAME_CHARS_MAX`] characters.
    Key(String),
}

impl LocationStep {
    /// Returns the step of a key. A long key is cut, because a name may be part of many faults.
    ///
    /// Example: a key of 1,000 characters becomes its first 64.
    #[must_use]
    pub fn key(name: &str) -> Self {
        let end = name.char_indices().nth(FAULT_NAME_CHARS_MAX).map_or(name.len(), |(at, _)| at);
        Self::Key(name.get(..end).unwrap_or_default().to_owned())
    }
}

/// A fault and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Reason of the fault.
    pub code: FaultCode,
    /// Location below `"body"`: a record index and then keys, or a byte offset for `json_invalid`.
    pub loc: Vec<LocationStep>,
}

/// The reason that a whole batch is refused. No record of the batch is written. The order is the
/// order of stages 9 to 13 in `docs/contract.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchRefusal {
    /// Syntax or schema: 422 with a `detail` list of 1 to [`crate::model::limits::FAULTS_MAX`] faults.
    Faults(Vec<Fault>),
    /// Faulty records of another protocol, in a call that refuses the batch if any record is
    /// faulty. Lists the first faults, as [`crate::model::batch::Batch::dropped`] does.
    Dropped(Vec<Fault>),
    /// More records than allowed: 413 `batch_too_large`.
    TooManyRecords {
        /// Number of elements in the array.
        received: usize,
        /// Maximum number of records.
        max: usize,
    },
    /// A content rule of the contract that names a field: 400 `invalid_input`, or
    /// `INVALID_ARGUMENT` `invalid_input:<field>`.
    InvalidInput {
        /// `tags` or `fields` over HTTP. Over gRPC also `entity_id`, `measurement` and others.
        /// `names` if a body adds more names than [`crate::model::limits::BODY_NAMES_BYTES`]
        /// allows.
        field: &'static str,
    },
    /// The new names of the batch would take the tenant past a bound. The answer is the answer to
    /// [`Self::InvalidInput`]. Names that the tenant already has can still be written.
    TenantFull {
        /// Name of the setting with the bound.
        bound: &'static str,
    },
    /// A field already has another type, from an earlier write or from an earlier cell of this
    /// batch.
    TypeConflict {
        /// The first such field in array order, then key order.
        field: String,
    },
    /// The queue of acknowledged batches is full: 503 `ingest_buffer_full`.
    BufferFull,
}

impl BatchRefusal {
    /// Returns the error code of the answer.
    ///
    /// Example: [`Self::TypeConflict`] is `field_type_conflict`.
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

    /// Returns the field that the answer names next to the code, if there is one.
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
