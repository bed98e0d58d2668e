//! A runtime of this process. A forked child leaves it alone.

use std::ops::Deref;

use fleetcast_core::model::error::{Error, Result};
use tokio::runtime::{Builder, Runtime};

pub(crate) struct OwnRuntime {
    process: u32,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    pub(crate) fn of(mut builder: Builder) -> Result<Self> {
        let runtime = builder.enable_all().build();
        let runtime =
            runtime.map_err(|source| Error::Io { what: "start a thread".to_owned(), source })?;
        Ok(Self { process: std::process::id(), runtime: Some(runtime) })
    }

    /// Returns true in the process that made the runtime.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Deref for OwnRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.runtime.as_ref().expect("only a drop takes it")
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.is_ours() {
            runtime.shutdown_background();
        } else {
            // The runtime's threads belong to another process.
            std::mem::forget(runtime);
        }
    }
}
