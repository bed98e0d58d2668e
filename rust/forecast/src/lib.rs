//! Input of the forecasts of a link's SNR: a line of features for each link and issue time.
//!
//! `features/snr.py` names the features in the order of the columns here. The engine computes them,
//! so that a forecast reads a week of rows without making arrays of Python from them.
//!
//! Each module may use the modules listed above it.

mod reduce;

mod rows;

mod minutes;

mod path;

mod curve;

mod hours;
mod recent;

mod features;

mod stored;

pub use features::{LinkFeatures, Telemetry};
pub use path::{INSTANTS, LinkPath};
pub use rows::LinkRow;
pub use stored::{stored_features, stored_rows};
