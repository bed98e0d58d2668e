//! Operators between two numbers.

use crate::column::ABSENT;

/// An operator of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl Operator {
    /// Returns the operator that a text writes, or `None` for an operator of sets.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Some(match text {
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Modulo,
            "^" => Self::Power,
            "atan2" => Self::Atan2,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            "<" => Self::Less,
            ">=" => Self::GreaterOrEqual,
            "<=" => Self::LessOrEqual,
            _ => return None,
        })
    }

    /// Returns true if the operator compares its numbers.
    pub(crate) const fn compares(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Greater
                | Self::Less
                | Self::GreaterOrEqual
                | Self::LessOrEqual
        )
    }

    /// Returns true if a result is another quantity, which does not keep the metric's name.
    pub(crate) const fn drops_metric(self) -> bool {
        !self.compares() && !matches!(self, Self::Atan2)
    }

    /// Returns the number that an arithmetic operator makes, or 1 or 0 for a comparison.
    #[expect(clippy::float_cmp, reason = "the language compares numbers exactly")]
    pub(crate) fn of(self, left: f64, right: f64) -> f64 {
        let holds = match self {
            Self::Add => return left + right,
            Self::Subtract => return left - right,
            Self::Multiply => return left * right,
            Self::Divide => return left / right,
            Self::Modulo => return left % right,
            Self::Power => return left.powf(right),
            Self::Atan2 => return left.atan2(right),
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Greater => left > right,
            Self::Less => left < right,
            Self::GreaterOrEqual => left >= right,
            Self::LessOrEqual => left <= right,
        };
        f64::from(u8::from(holds))
    }

    /// Returns the result between elements of vectors: a comparison keeps `kept` or nothing, unless
    /// it `returns_bool`.
    pub(crate) fn between(self, left: f64, right: f64, kept: f64, returns_bool: bool) -> f64 {
        let result = self.of(left, right);
        if !self.compares() || returns_bool {
            result
        } else if result > 0.0 {
            kept
        } else {
            ABSENT
        }
    }
}
