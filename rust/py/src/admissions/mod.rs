//! Admission remembered: writes that are served without the interpreter, as long as nothing has
//! changed that the last decision about one like them rested on.
//!
//! Python decides, and hands its verdict over (`http/remembering.py`); no rule of the pipeline is
//! here. What is not plain, what has no verdict and what comes to nothing is handed on to Python.

mod books;

mod control;

mod verdict;

mod draft;

mod serving;

pub(crate) use control::{Control, ControlVersion};
pub(crate) use draft::{Draft, Files};
pub(crate) use serving::{Admissions, Remembered};
pub(crate) use verdict::{Basis, is_key_good};
