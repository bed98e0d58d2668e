//! `fleetcast._core`: the engine as Python sees it. `python/fleetcast/_core.pyi` describes it.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
