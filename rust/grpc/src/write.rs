//! `TelemetryIngest.Write`: check the key, receive the message, then check the key again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fleetcast_service::accounts::{Identity, Rejection, wall_seconds};
use fleetcast_service::admission::{TELEMETRY, admit_known, check_rights};
use h2::RecvStream;
use http::HeaderMap;
use tokio::time::{Instant, timeout, timeout_at};

use crate::call::Call;
use crate::message::{CallBody, CallMessage, Compression};
use crate::server::{CALLS_MAX, KEY_PATIENCE, MESSAGE_PATIENCE};
use crate::shares::SharePart;
use crate::status::CallRefusal;
use crate::store::{AdmittedBatch, store};

/// The packaged name of the service, and its name in the contract.
pub(crate) const WRITE_PATHS: [&str; 2] =
    ["/fleet.telemetry.v1.TelemetryIngest/Write", "/TelemetryIngest/Write"];

/// Writes the batch of a call. The answer means that the batch is on disk, or queued in
/// asynchronous mode.
pub(crate) async fn write(
    call: &mut Call,
    head: &HeaderMap,
    mut body: RecvStream,
) -> Result<Bytes, CallRefusal> {
    let until =
        Instant::now() + timeout_of(head).map_or(MESSAGE_PATIENCE, |t| t.min(MESSAGE_PATIENCE));
    let key = key_of(head)?;
    let identity = entitled(call, key.as_deref()).await?;
    let server = Arc::clone(&call.of.server);
    let calls = SharePart::take(&server.calls, &identity.account, 1, CALLS_MAX);
    let _calls = calls.ok_or_else(CallRefusal::over_share)?;
    let (message, held_bytes) = timeout_at(until, message(call, head, &mut body, &identity))
        .await
        .unwrap_or_else(|_| Err(CallRefusal::new("read_deadline_exceeded")))?;
    call.bytes_in = message.bytes.len() as u64;
    // The key may have ended while the message arrived.
    let identity = entitled(call, key.as_deref()).await?;
    let batch =
        AdmittedBatch { request_id: call.request_id.clone(), identity, message, held_bytes };
    store(&server, batch).await
}

async fn message(
    call: &Call,
    head: &HeaderMap,
    body: &mut RecvStream,
    identity: &Identity,
) -> Result<(CallMessage, SharePart), CallRefusal> {
    let server = &call.of.server;
    let packing = Compression::of_head(head)?;
    let bytes_max = server.parts.message_bytes_max;
    let rules = server.rules().ok_or_else(|| CallRefusal::new("telemetry_unavailable"))?;
    let body = CallBody { stream: body, packing, bytes_max };
    let take =
        |bytes| SharePart::take(&server.held_bytes, &identity.account, bytes, rules.held_bytes_max);
    body.message(take).await
}

/// Returns the identity behind a key that may write.
async fn entitled(call: &mut Call, key: Option<&str>) -> Result<Arc<Identity>, CallRefusal> {
    let server = Arc::clone(&call.of.server);
    let authenticator = &server.parts.authenticator;
    if let Some(key) = key
        && let Some(identity) = admit_known(authenticator, key, &TELEMETRY)
    {
        call.identify(&identity, key);
        return Ok(identity);
    }
    let identity = match look_up(call, key).await? {
        Ok(identity) => identity,
        Err(rejection) => return Err(rejected(call, key, rejection)),
    };
    call.identify(&identity, key.unwrap_or_default());
    check_rights(&TELEMETRY, &identity).map_err(|refusal| CallRefusal::new(refusal.code))?;
    Ok(identity)
}

/// Looks a key up in a thread, because accounts that are stuck must not stop the loop.
async fn look_up(
    call: &Call,
    key: Option<&str>,
) -> Result<Result<Arc<Identity>, Rejection>, CallRefusal> {
    let server = Arc::clone(&call.of.server);
    let owner = server.owners.of(key.map(str::as_bytes), &call.of.address);
    // An account with too many calls is refused before the next call costs any work.
    let calls = SharePart::take(&server.calls, &owner, 1, CALLS_MAX);
    let _calls = calls.ok_or_else(CallRefusal::over_share)?;
    let lookups = SharePart::take(&server.lookups, &owner, 1, CALLS_MAX);
    let lookups = lookups.ok_or_else(CallRefusal::over_share)?;
    let (key, shared) = (key.map(str::to_owned), Arc::clone(&server));
    let found = server.key_workers.run(&owner, move || {
        let found = shared.parts.authenticator.identify(key.as_deref(), wall_seconds());
        drop(lookups); // kept to the end of the lookup, even if its call has ended
        found
    });
    match timeout(KEY_PATIENCE, found).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(_)) => Err(CallRefusal::fault("internal", "the lookup of a key failed".into())),
        Err(_) => {
            let fault = format!("keys cannot be checked: no answer within {KEY_PATIENCE:?}");
            Err(CallRefusal::fault("entitlement_unavailable", fault))
        }
    }
}

fn rejected(call: &mut Call, key: Option<&str>, rejection: Rejection) -> CallRefusal {
    match rejection {
        Rejection::NoKey => CallRefusal::new("auth_failed"),
        Rejection::InvalidKey => {
            call.bad_key = key.map(str::to_owned);
            CallRefusal::new("auth_failed")
        }
        Rejection::TenantUnknown => CallRefusal::new("tenant_unknown"),
        Rejection::TenantDisabled => CallRefusal::new("tenant_disabled"),
        Rejection::Unavailable(error) => {
            let fault = format!("keys cannot be checked: {error}");
            CallRefusal::fault("entitlement_unavailable", fault)
        }
    }
}

/// Returns the key of a call. Several keys count as no key, unless they are equal.
fn key_of(head: &HeaderMap) -> Result<Option<String>, CallRefusal> {
    let mut keys = head.get_all("x-api-key").iter();
    let first = keys.next();
    if keys.any(|key| Some(key) != first) {
        return Err(CallRefusal::new("auth_failed"));
    }
    Ok(first.map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned()))
}

/// Returns the time that a client gives its call: up to eight digits and a unit. Example: `10S` is
/// ten seconds.
fn timeout_of(head: &HeaderMap) -> Option<Duration> {
    let text = head.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at(text.len().checked_sub(1)?);
    let amount: u32 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let unit = match unit {
        "H" => Duration::from_hours(1),
        "M" => Duration::from_mins(1),
        "S" => Duration::from_secs(1),
        "m" => Duration::from_millis(1),
        "u" => Duration::from_micros(1),
        "n" => Duration::from_nanos(1),
        _ => return None,
    };
    Some(unit * amount)
}
