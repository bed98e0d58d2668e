//! Aggregations that need one pass over the values of a group: `sum`, `avg`, `min`, `max`, `count`,
//! `group`, `stddev` and `stdvar`.

use crate::column::{ABSENT, StepColumn, is_absent};

/// An aggregation in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnePassFold {
    Sum,
    Avg,
    Min,
    Max,
    Count,
    Group,
    Stddev,
    Stdvar,
}

impl OnePassFold {
    /// Returns the aggregation of a name.
    pub(super) fn read(name: &str) -> Option<Self> {
        Some(match name {
            "sum" => Self::Sum,
            "avg" => Self::Avg,
            "min" => Self::Min,
            "max" => Self::Max,
            "count" => Self::Count,
            "group" => Self::Group,
            "stddev" => Self::Stddev,
            "stdvar" => Self::Stdvar,
            _ => return None,
        })
    }

    /// Aggregates series at each step.
    pub(super) fn folded<'c>(
        self,
        columns: impl Iterator<Item = &'c StepColumn>,
        steps: usize,
    ) -> Vec<f64> {
        let mut folds = vec![State::default(); steps];
        for column in columns {
            for (state, value) in folds.iter_mut().zip(&column.values) {
                if !is_absent(*value) {
                    state.count += 1.0;
                    self.add(state, *value);
                }
            }
        }
        folds.into_iter().map(|state| self.result(state)).collect()
    }

    #[inline]
    fn add(self, state: &mut State, value: f64) {
        if state.count < 2.0 {
            let is_spread = matches!(self, Self::Stddev | Self::Stdvar);
            *state = State { count: 1.0, value: if is_spread { 0.0 } else { value }, mean: value };
            return;
        }
        match self {
            Self::Sum => state.value += value,
            Self::Avg => {
                if state.mean.is_infinite() {
                    let is_same = value.is_infinite() && (state.mean > 0.0) == (value > 0.0);
                    // An infinite mean stays, unless an opposite infinity or NaN joins it.
                    if is_same || value.is_finite() {
                        return;
                    }
                }
                state.mean += value / state.count - state.mean / state.count;
            }
            Self::Min if state.value > value || state.value.is_nan() => state.value = value,
            Self::Max if state.value < value || state.value.is_nan() => state.value = value,
            Self::Min | Self::Max | Self::Count | Self::Group => {}
            Self::Stddev | Self::Stdvar => {
                let delta = value - state.mean;
                state.mean += delta / state.count;
                state.value += delta * (value - state.mean);
            }
        }
    }

    fn result(self, state: State) -> f64 {
        if state.count == 0.0 {
            return ABSENT;
        }
        match self {
            Self::Sum | Self::Min | Self::Max => state.value,
            Self::Avg => state.mean,
            Self::Count => state.count,
            Self::Group => 1.0,
            Self::Stdvar => state.value / state.count,
            Self::Stddev => (state.value / state.count).sqrt(),
        }
    }
}

/// The values of one step so far.
#[derive(Clone, Copy, Default)]
struct State {
    count: f64,
    value: f64,
    mean: f64,
}
