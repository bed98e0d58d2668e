//! Bodies of answers.

use fleetcast_core::model::clock::Now;
use fleetcast_core::model::json::write_string;
use fleetcast_core::plane::{LatestAnswer, Plane, ReadError};
use fleetcast_core::query::{SeriesJson, SeriesLimits};

use super::latest::LatestParameters;
use super::series::series_parameters;
use crate::refusal::Refusal;

/// The reason for which a read has no answer.
#[derive(Debug)]
pub enum ReadFailure {
    /// Its parameters are refused.
    Parameters(Refusal),
    /// The plane refuses it, or fails.
    Plane(ReadError),
}

impl From<Refusal> for ReadFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Parameters(refusal)
    }
}

impl From<ReadError> for ReadFailure {
    fn from(error: ReadError) -> Self {
        Self::Plane(error)
    }
}

/// The newest samples that the parameters in `query` ask for, as of now.
///
/// # Errors
/// The reason for which there are none.
pub fn latest(plane: &Plane, query: &str) -> Result<LatestAnswer, ReadFailure> {
    let LatestParameters { as_of_ns, freshness_ns, measurement } = LatestParameters::read(query)?;
    let now = Now::by_wall_clock();
    Ok(plane.begin_latest(as_of_ns, freshness_ns, measurement.as_deref(), now)?)
}

/// The series that the parameters in `query` ask for, as of now.
///
/// # Errors
/// The reason for which there are none.
pub fn series(
    plane: &Plane,
    query: &str,
    limits: &SeriesLimits,
) -> Result<SeriesJson, ReadFailure> {
    let request = series_parameters(query)?;
    Ok(plane.answer_series(request, limits, Now::by_wall_clock())?.into_json())
}

/// The answer to a write: `first_row` is the index of its first record in all that is written.
#[must_use]
pub fn write_answer(
    write_id: &str,
    accepted_count: u32,
    rejected: &[u32],
    first_row: usize,
) -> Vec<u8> {
    let mut body = br#"{"write_id":"#.to_vec();
    write_string(&mut body, write_id);
    let rejected_count = rejected.len();
    body.extend_from_slice(
        format!(
            ",\"accepted_count\":{accepted_count},\"rejected_count\":{rejected_count},\
             \"rejected_indices\":"
        )
        .as_bytes(),
    );
    for (number, index) in rejected.iter().enumerate() {
        body.push(if number == 0 { b'[' } else { b',' });
        body.extend_from_slice((first_row + *index as usize).to_string().as_bytes());
    }
    body.extend_from_slice(if rejected.is_empty() { b"null}" } else { b"]}" });
    body
}
