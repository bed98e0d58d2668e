//! Refusals: the code of an answer, and what is said beside it.

/// A value that is said beside a code.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// Faults of parameters.
    Faults(Vec<ParameterFault>),
    /// The fault of a head or a body: its type, its place, and a sentence for people.
    Fault(&'static str, &'static [&'static str], &'static str),
}

/// A fault of one query parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterFault {
    /// Type of the fault, as the contract names it.
    pub kind: &'static str,
    /// The parameter.
    pub name: &'static str,
    /// Index of the value, if the parameter may be given many times.
    pub index: Option<usize>,
    /// A sentence for people.
    pub message: String,
}

/// A refusal by the rules of the contract. Its answer is made by whoever knows the way it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The error code.
    pub code: &'static str,
    /// Names and values of what is said beside it.
    pub context: Vec<(&'static str, Value)>,
}

impl Refusal {
    /// A refusal of which nothing is said but its code.
    #[must_use]
    pub fn new(code: &'static str) -> Self {
        Self { code, context: Vec::new() }
    }

    /// The same, with a value under `name`.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.context.push((name, value));
        self
    }
}
