//! Batches on their way into planes, in threads.

use std::sync::Arc;

use bytes::Bytes;
use fleetcast_core::model::clock;
use fleetcast_core::model::error::{Error, catching};
use fleetcast_core::model::fault::BatchRefusal;
use fleetcast_core::plane::{Failure, PendingBatch, Plane, WriteError, WriteReport};
use fleetcast_core::storage::write_id;
use fleetcast_core::wire::Format;
use fleetcast_service::accounts::Identity;
use fleetcast_service::answers::WriteOutcome;
use fleetcast_service::planes::OpenPlane;
use tokio::sync::oneshot;

use crate::message::{CallMessage, framed};
use crate::server::{Server, WriteRules};
use crate::shares::SharePart;
use crate::status::CallRefusal;

/// A message that was admitted.
pub(crate) struct AdmittedBatch {
    pub(crate) request_id: String,
    pub(crate) identity: Arc<Identity>,
    pub(crate) message: CallMessage,
    /// A part of the account's share, held until the message is stored.
    pub(crate) held_bytes: SharePart,
}

/// `WriteResponse` of the schema.
#[derive(prost::Message)]
struct WriteResponse {
    #[prost(string, tag = "1")]
    write_id: String,
    #[prost(uint32, tag = "2")]
    accepted_count: u32,
    #[prost(uint32, tag = "3")]
    rejected_count: u32,
}

type CallResult = Result<Bytes, CallRefusal>;

/// Stores a batch, to its end even if the client does not wait for it. Returns the answer.
pub(crate) async fn store(server: &Arc<Server>, batch: AdmittedBatch) -> CallResult {
    let (sender, outcome) = oneshot::channel();
    let (shared, account) = (Arc::clone(server), batch.identity.account.clone());
    server.write_workers.put(&account, move || begin(&shared, batch, sender));
    let failed = || CallRefusal {
        write_outcome: Some(WriteOutcome::Unknown),
        ..CallRefusal::fault("internal", "a write failed".into())
    };
    outcome.await.unwrap_or_else(|_| Err(failed()))
}

/// Appends a batch to the log of its plane. The thread that waits for the log's disk acknowledges
/// the batch.
///
/// The share is given back before the answer goes out. Otherwise a client whose next call follows
/// at once may be refused for the bytes of the last.
fn begin(server: &Arc<Server>, batch: AdmittedBatch, sender: oneshot::Sender<CallResult>) {
    let AdmittedBatch { request_id, identity, message, mut held_bytes } = batch;
    let begun = opened(server, &identity, &request_id).and_then(|open| {
        let rules = server.rules().ok_or_else(|| CallRefusal::new("telemetry_unavailable"))?;
        let bytes_max = server.parts.message_bytes_max;
        let bytes = message.unpacked(&mut held_bytes, bytes_max, rules.held_bytes_max)?;
        let appended = append(&open, &rules, &bytes);
        Ok((appended.map_err(|error| failed(server, &identity, &open, error))?, open))
    });
    let ((pending, plane, write_id), open) = match begun {
        Ok(begun) => begun,
        Err(refusal) => {
            drop(held_bytes);
            return drop(sender.send(Err(refusal)));
        }
    };
    let (server, of) = (Arc::clone(server), Arc::clone(&open));
    open.acknowledge(pending, move |written| {
        let outcome = match written {
            Ok(written) => Ok(answer(&server, &identity, write_id, &written)),
            Err(error) => Err(failed(&server, &identity, &of, Failure::Failed(error))),
        };
        drop((plane, held_bytes)); // held until now
        drop(sender.send(outcome));
    });
}

fn opened(
    server: &Server,
    identity: &Identity,
    request_id: &str,
) -> Result<Arc<OpenPlane>, CallRefusal> {
    let opened = server.parts.planes.open(&identity.account, &identity.tenant.name);
    opened.map_err(|error| match error {
        Error::Unavailable { .. } | Error::Unknown { .. } => unavailable(&error),
        // The error is for the log; the client does not see it.
        error => {
            let fault = format!("store cannot be opened: {error} (request {request_id})");
            CallRefusal::fault("tenant_unavailable", fault)
        }
    })
}

fn append(
    open: &OpenPlane,
    rules: &WriteRules,
    bytes: &[u8],
) -> Result<(PendingBatch, Arc<Plane>, String), WriteError> {
    let plane = open.for_a_call()?;
    let now_ns = clock::ingest_ns()?;
    let write_id = write_id::new(now_ns)?;
    let (batch, when) = (&rules.bounds.batch, rules.bounds.acknowledge(None));
    let pending = catching(|| Ok(plane.append(Format::Protobuf, bytes, batch, now_ns, when)))??;
    Ok((pending, plane, write_id))
}

/// Counts a batch that was stored, and returns its answer.
fn answer(server: &Server, identity: &Identity, write_id: String, written: &WriteReport) -> Bytes {
    let by = (&*identity.tenant.name, &*identity.key.key_id);
    server.parts.accounting.wrote(&identity.account, by, written);
    let rejected_count = u32::try_from(written.rejected_indices.len()).unwrap_or(u32::MAX);
    framed(&WriteResponse { write_id, accepted_count: written.accepted_count, rejected_count })
}

/// Returns the refusal of a batch that was not stored. The next call opens a failed plane again. A
/// full disk and an unreachable engine are temporary, so their planes stay open.
fn failed(
    server: &Server,
    identity: &Identity,
    open: &Arc<OpenPlane>,
    error: WriteError,
) -> CallRefusal {
    let error = match error {
        Failure::Refused(refusal) => return refused(&refusal),
        Failure::Failed(error) => error,
    };
    if !matches!(error, Error::DiskFull | Error::Unavailable { .. } | Error::Unknown { .. }) {
        // Errors of the flush are reported when unused planes are closed.
        drop(server.parts.planes.release(&identity.account, Some(open)));
    }
    let write_outcome = Some(WriteOutcome::of_error(&error));
    CallRefusal { write_outcome, ..unavailable(&error) }
}

fn unavailable(error: &Error) -> CallRefusal {
    CallRefusal::fault("telemetry_unavailable", format!("store unavailable: {error}"))
}

fn refused(refusal: &BatchRefusal) -> CallRefusal {
    let bound = if let BatchRefusal::TenantFull { bound } = refusal { Some(*bound) } else { None };
    CallRefusal { bound, ..CallRefusal::of_field(refusal.code(), refusal.field()) }
}
