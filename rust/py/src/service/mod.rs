//! The service as Python sees it: who is let in, by which rules, and the requests that are served
//! without the interpreter.

mod context;

mod authenticator;

mod environ_request;

mod decision;

mod books;

mod rules;

mod serving;

pub(crate) use authenticator::Authenticator;
pub(crate) use books::{Books, asked};
pub(crate) use decision::Decision;
pub(crate) use serving::Serving;

use pyo3::prelude::*;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Authenticator>()?;
    module.add_class::<Decision>()?;
    module.add_class::<rules::LimiterFile>()?;
    module.add_class::<rules::Service>()?;
    module.add_class::<Serving>()?;
    module.add_function(wrap_pyfunction!(rules::key_fields, module)?)?;
    module.add_function(wrap_pyfunction!(rules::routes, module)?)?;
    module.add_function(wrap_pyfunction!(books::note_unreadable, module)?)?;
    module.add_function(wrap_pyfunction!(books::write_served, module)?)
}
