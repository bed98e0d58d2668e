//! Texts of keys, of operator tokens and of console sessions as Python sees them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use fleetcast_service::accounts::{self, SecretHasher, SecretKind, new_secret_text, read_hash};

use crate::errors::store_error;

fn kind_of(kind: &str) -> PyResult<SecretKind> {
    match kind {
        "key" => Ok(SecretKind::Key),
        "token" => Ok(SecretKind::Token),
        "session" => Ok(SecretKind::Session),
        _ => Err(PyValueError::new_err("not a kind of secret texts")),
    }
}

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct SecretText {
    text: String,
    #[pyo3(get)]
    id: String,
    secret: String,
}

impl SecretText {
    fn of(kind: &str, text: String) -> PyResult<Option<Self>> {
        let parts = accounts::SecretText::read(kind_of(kind)?, &text);
        let parts = parts.map(|parts| (parts.id.to_owned(), parts.secret.to_owned()));
        Ok(parts.map(|(id, secret)| Self { text, id, secret }))
    }
}

#[pymethods]
impl SecretText {
    #[new]
    #[pyo3(signature = (kind, environment = ""))]
    fn new(kind: &str, environment: &str) -> PyResult<Self> {
        let text =
            new_secret_text(kind_of(kind)?, environment).map_err(|error| store_error(&error));
        Self::of(kind, text?)?.ok_or_else(|| PyValueError::new_err("not an environment"))
    }

    #[classmethod]
    fn read(_class: &Bound<'_, PyType>, kind: &str, text: String) -> PyResult<Option<Self>> {
        Self::of(kind, text)
    }

    fn hash(&self, pepper: &[u8]) -> String {
        SecretHasher::new(pepper).hash(&self.secret)
    }

    fn proves(&self, pepper: &[u8], kept: Option<&str>) -> bool {
        SecretHasher::new(pepper).proves(&self.secret, kept.and_then(read_hash).as_ref())
    }

    fn __str__(&self) -> &str {
        &self.text
    }
}
