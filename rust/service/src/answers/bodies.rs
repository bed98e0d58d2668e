//! Bodies of answers.

use fleetcast_core::model::chunks::AnswerBody;
use fleetcast_core::model::clock::CallTime;
use fleetcast_core::model::json::write_string;
use fleetcast_core::plane::{Failure, Plane};
use fleetcast_core::query::SeriesLimits;

use super::latest::LatestParameters;
use super::series::series_parameters;
use crate::refusal::Refusal;

/// The reason for which a read has no answer.
pub type ReadFailure = Failure<Refusal>;

impl From<Refusal> for ReadFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Returns the newest samples that the parameters in `query` ask for, as of now.
///
/// # Errors
/// Returns a [`ReadFailure`] if the parameters are faulty or the plane cannot be read.
pub fn latest(plane: &Plane, query: &str) -> Result<AnswerBody, ReadFailure> {
    let LatestParameters { as_of_ns, freshness_ns, measurement } = LatestParameters::read(query)?;
    let now = CallTime::by_wall_clock();
    let body = plane.begin_latest(as_of_ns, freshness_ns, measurement.as_deref(), now);
    body.map_err(Failure::refused_as)
}

/// Returns the series that the parameters in `query` ask for, as of now.
///
/// # Errors
/// Returns a [`ReadFailure`] if the parameters are faulty or the plane cannot be read.
pub fn series(
    plane: &Plane,
    query: &str,
    limits: &SeriesLimits,
) -> Result<AnswerBody, ReadFailure> {
    let request = series_parameters(query)?;
    let answer = plane.answer_series(request, limits, CallTime::by_wall_clock());
    Ok(answer.map_err(Failure::refused_as)?.into_json())
}

/// Returns the answer to a write. `first_row` is the index of the batch's first record in the whole
/// input. Example: with `first_row` 100, the rejected record 2 is reported as 102.
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
