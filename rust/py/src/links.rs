//! Features of links as bytes of arrays. `fleetcast_forecast` has the formulas.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use fleetcast_core::model::clock::CallTime;
use fleetcast_forecast::{
    INSTANTS, LinkFeatures, LinkPath, LinkRow, Telemetry, stored_features, stored_rows,
};

use crate::arrays::{PyArrays, numbers};
use crate::gil::leave;
use crate::plane::Plane;

/// Times of a link's rows, and its numbers in the order of [`LinkRow::FIELDS`].
type PyRows = (PyBuffer<i64>, [Option<PyBuffer<f64>>; LinkRow::FIELDS.len()]);

/// Elevations and distances of an orbit, at each issue time and each instant ahead.
type PyOrbit = (PyBuffer<f64>, PyBuffer<f64>);

/// Columns, telemetry and context of [`LinkFeatures`].
type PyFeatures<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyfunction]
pub(crate) fn link_features(
    py: Python<'_>,
    links: Vec<PyRows>,
    issued_ns: PyBuffer<i64>,
    orbits: Vec<Option<PyOrbit>>,
) -> PyResult<PyFeatures<'_>> {
    if links.len() != orbits.len() {
        return Err(PyValueError::new_err("each link needs an orbit, or None"));
    }
    let issued_ns = issued_ns.to_vec(py)?;
    let mut features = LinkFeatures::with_capacity(links.len() * issued_ns.len());
    for (link, orbit) in links.iter().zip(&orbits) {
        let rows = rows_of(py, link)?;
        let orbit = orbit.as_ref().map(|orbit| orbit_of(py, orbit, issued_ns.len())).transpose()?;
        leave(py, || {
            features.push(&rows, &issued_ns, orbit.as_deref());
            Ok(())
        })?;
    }
    arrays(py, &features)
}

#[pyfunction]
pub(crate) fn stored_link_features<'py>(
    py: Python<'py>,
    plane: &Plane,
    entity_ids: Vec<String>,
    issued_ns: i64,
) -> PyResult<PyFeatures<'py>> {
    let now = CallTime::by_wall_clock();
    let features =
        plane.detached(py, |plane| stored_features(plane, &entity_ids, issued_ns, now))?;
    arrays(py, &features)
}

#[pyfunction]
pub(crate) fn stored_link_rows<'py>(
    py: Python<'py>,
    plane: &Plane,
    entity_ids: Vec<String>,
    first_issued_ns: i64,
    last_issued_ns: i64,
) -> PyResult<PyArrays<'py>> {
    let issued_ns = (first_issued_ns, last_issued_ns);
    let now = CallTime::by_wall_clock();
    let links = plane.detached(py, |plane| stored_rows(plane, &entity_ids, issued_ns, now))?;
    let counts = links.iter().map(Vec::len).collect();
    let rows = links.concat();
    let channels = LinkRow::FIELDS.iter().enumerate().map(|(number, name)| {
        let column: Vec<f64> = rows.iter().map(|row| row.numbers[number]).collect();
        Ok(((*name).to_owned(), numbers(py, &column, f64::to_le_bytes)?))
    });
    let channels = channels.collect::<PyResult<_>>()?;
    let times_ns: Vec<i64> = rows.iter().map(|row| row.time_ns).collect();
    let times = numbers(py, &times_ns, i64::to_le_bytes)?;
    Ok((counts, times, channels))
}

fn rows_of(py: Python<'_>, (times_ns, columns): &PyRows) -> PyResult<Vec<LinkRow>> {
    let mut rows: Vec<_> = times_ns.to_vec(py)?.into_iter().map(LinkRow::empty).collect();
    for (number, column) in columns.iter().enumerate() {
        let Some(column) = column else { continue };
        for (row, value) in rows.iter_mut().zip(sized(py, column, times_ns.item_count())?) {
            row.numbers[number] = value;
        }
    }
    Ok(rows)
}

fn orbit_of(
    py: Python<'_>,
    (elevation_deg, range_km): &PyOrbit,
    times: usize,
) -> PyResult<Vec<LinkPath>> {
    let elevation_deg = sized(py, elevation_deg, times * INSTANTS)?;
    let range_km = sized(py, range_km, times * INSTANTS)?;
    let (elevations, _) = elevation_deg.as_chunks::<INSTANTS>();
    let (ranges, _) = range_km.as_chunks::<INSTANTS>();
    let path = |(elevation_deg, range_km): (&[f64; INSTANTS], &[f64; INSTANTS])| LinkPath {
        elevation_deg: *elevation_deg,
        range_km: *range_km,
    };
    Ok(elevations.iter().zip(ranges).map(path).collect())
}

/// Copies an array of `size` numbers.
fn sized<T: Element>(py: Python<'_>, numbers: &PyBuffer<T>, size: usize) -> PyResult<Vec<T>> {
    if numbers.item_count() != size {
        return Err(PyValueError::new_err("the arrays differ in length"));
    }
    numbers.to_vec(py)
}

fn arrays<'py>(py: Python<'py>, features: &LinkFeatures) -> PyResult<PyFeatures<'py>> {
    let code = |telemetry: &Telemetry| match telemetry {
        Telemetry::Enough => 0,
        Telemetry::Insufficient => 1,
        Telemetry::Missing => 2,
    };
    let telemetry: Vec<u8> = features.telemetry.iter().map(code).collect();
    Ok((
        numbers(py, &features.columns, f64::to_le_bytes)?,
        PyBytes::new(py, &telemetry),
        numbers(py, &features.context, f64::to_le_bytes)?,
    ))
}
