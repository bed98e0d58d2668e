//! Reasons for which a question has no answer, in the words of Prometheus' HTTP API.

use fleetcast_core::plane::Failure;
use fleetcast_core::query::labelled::LabelRefusal;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The question is malformed, or outside the language: 400 `bad_data`.
    BadData,
    /// The question cannot be evaluated over these samples: 422 `execution`.
    Execution,
    /// Evaluation took too long: 503 `timeout`.
    Timeout,
}

/// The reason for which a question is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionRefusal {
    /// Kind of the refusal.
    pub(crate) kind: RefusalKind,
    /// A sentence for people.
    pub(crate) message: String,
}

/// The reason for which a question has no answer: a refusal, or a fault of the store.
pub(crate) type QuestionError = Failure<QuestionRefusal>;

/// Result of a step of an evaluation.
pub(crate) type EvaluationResult<T> = std::result::Result<T, QuestionError>;

impl RefusalKind {
    /// Returns the HTTP status, the status with its phrase, and the word of the answer.
    #[must_use]
    pub(crate) const fn status(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::BadData => (400, "400 Bad Request", "bad_data"),
            Self::Execution => (422, "422 Unprocessable Entity", "execution"),
            Self::Timeout => (503, "503 Service Unavailable", "timeout"),
        }
    }
}

impl From<LabelRefusal> for QuestionRefusal {
    fn from(bound: LabelRefusal) -> Self {
        let (kind, message) = match bound {
            LabelRefusal::TooManySamples => (
                RefusalKind::Execution,
                "query processing would load too many samples into memory in query execution \
                 (adapters.query_samples_max)",
            ),
            LabelRefusal::TooLate => (
                RefusalKind::Timeout,
                "query timed out in expression evaluation (adapters.query_seconds_max)",
            ),
        };
        Self { kind, message: message.to_owned() }
    }
}

/// Makes a refusal of a malformed question.
pub(crate) fn bad_data(message: impl Into<String>) -> QuestionError {
    refused(RefusalKind::BadData, message)
}

/// Makes a refusal of an evaluation.
pub(crate) fn execution(message: impl Into<String>) -> QuestionError {
    refused(RefusalKind::Execution, message)
}

/// Makes the refusal of a question that passed a bound.
pub(crate) fn passed(bound: LabelRefusal) -> QuestionError {
    Failure::Refused(bound.into())
}

fn refused(kind: RefusalKind, message: impl Into<String>) -> QuestionError {
    Failure::Refused(QuestionRefusal { kind, message: message.into() })
}

/// Refuses a name that is not in the language.
pub(crate) fn unknown(name: &str) -> QuestionError {
    bad_data(format!("{name} is not supported"))
}
