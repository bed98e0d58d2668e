//! Writes served by a verdict that stands.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;

use fleetcast_core::model::error::catching;
use fleetcast_core::plane::{AdaptedBody, Failure, Pending, Plane, WriteError};
use fleetcast_core::storage::write_id;
use fleetcast_core::wire::Format;
use fleetcast_front::admission::{Deciding, Verdicts};
use fleetcast_front::books::{Counters, new_request_id};
use fleetcast_front::head::field_name;
use fleetcast_front::{Answer, Asked, BodyLength, Fast, Request, Served, answer_head};

use super::control::Control;
use super::draft::Draft;
use super::verdict::{Basis, Verdict};
use crate::arguments::ingest_ns;
use crate::open_plane::OpenPlane;
use crate::results::answer;

/// Verdicts of one worker.
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Admissions(Arc<Remembered>);

impl Admissions {
    pub(crate) fn remembered(&self) -> Arc<Remembered> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Admissions {
    #[new]
    #[pyo3(signature = (deciding_fields, *, control_store, counters, counters_bytes, bounds_seconds, remembered))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a list over as it is")]
    #[expect(unsafe_code, reason = "descriptors are numbers in Python")]
    fn new(
        deciding_fields: Vec<String>,
        control_store: Control,
        counters: i32,
        counters_bytes: usize,
        bounds_seconds: Vec<f64>,
        remembered: usize,
    ) -> PyResult<Self> {
        let verdicts = Verdicts::new(control_store.lifetime());
        // SAFETY: it is borrowed for one call, which fails where it is not open.
        let memory = unsafe { BorrowedFd::borrow_raw(counters) };
        Ok(Self(Arc::new(Remembered {
            fields: deciding_fields.iter().map(|name| field_name(name)).collect(),
            control: control_store,
            counters: Arc::new(Counters::map(memory, counters_bytes)?),
            bounds: bounds_seconds.into(),
            served: remembered,
            verdicts,
        })))
    }
}

/// `Admissions` without the interpreter.
pub(crate) struct Remembered {
    /// Names of the fields that decide, as heads have them.
    fields: Vec<String>,
    control: Control,
    counters: Arc<Counters>,
    bounds: Arc<[f64]>,
    /// Index of the counter of what is served here.
    served: usize,
    verdicts: Verdicts<Verdict>,
}

impl Remembered {
    /// State of the world before `request` is decided on; `None` where no verdict is of use.
    pub(crate) fn basis(&self, request: &Request) -> Option<Basis> {
        let at = Instant::now();
        if !is_plain(request) || request.is_body_due() {
            return None;
        }
        let is_of_use = self.verdicts.is_asked_again(&self.deciding(request)?, at);
        is_of_use.then(|| Basis {
            control: self.control.span(),
            settings: request.settings_version(),
            at,
        })
    }

    /// Keeps the verdict about a request, now that it has its answer.
    pub(crate) fn remember(
        &self,
        request: &Request,
        basis: &Basis,
        draft: Draft,
        status: &str,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    ) {
        let is_named = fields.iter().any(|(name, _)| is_request_id(name));
        let Some(deciding) = self.deciding(request).filter(|_| is_named) else { return };
        if let Some(verdict) = draft.complete(&self.bounds, basis, fields)
            && verdict.status().0 == status
        {
            self.verdicts.remember(&deciding, basis.at, verdict);
        }
    }

    fn deciding<'r>(&self, request: &'r Request) -> Option<Deciding<'r>> {
        let head = request.head()?;
        let target = [head.method(), head.path(), head.query()].map(|text| Some(text.as_bytes()));
        let fields = self.fields.iter().map(|name| head.field(name));
        let peer = Some(request.peer().address.as_bytes());
        Deciding::of([peer].into_iter().chain(target).chain(fields))
    }

    /// The verdict about `request`, if one stands.
    fn verdict(&self, request: &Request) -> Option<Arc<Verdict>> {
        if !is_plain(request) {
            return None;
        }
        let verdict = self.verdicts.find(&self.deciding(request)?, Instant::now())?;
        let body_bytes = request.head()?.body_bytes();
        let is_whole = request.is_body_due() || request.body().len() as u64 == body_bytes;
        let stands = is_whole
            && body_bytes <= verdict.body_bytes_max
            && verdict.stands(self.control.span(), request.settings_version());
        stands.then_some(verdict)
    }

    /// Does what the pipeline does with each request before its body is looked at.
    fn admits(verdict: &Verdict, request: &mut Request) -> bool {
        if !request.is_admitted() {
            if !verdict.limited.admits() {
                return false;
            }
            request.set_admitted();
        }
        verdict.limited.is_free() && request.claim(&verdict.account)
    }

    /// Appends the body to the log of its plane, and leaves the request there to be answered.
    fn write(
        &self,
        verdict: Arc<Verdict>,
        (open, plane): (Arc<OpenPlane>, Arc<Plane>),
        mut request: Request,
    ) -> Served {
        let began = Instant::now();
        // A clock before 2020 is refused where all that is no 202 is.
        let Ok(now_ns) = ingest_ns(None) else { return Served::HandOn(request) };
        let Ok(write_id) = write_id::new(now_ns) else { return Served::HandOn(request) };
        verdict.books.begin(&self.counters);
        let pending = match append(&verdict, &plane, request.body(), now_ns) {
            Ok(pending) => pending,
            Err(outcome) => {
                verdict.books.interrupt(&self.counters);
                if let Failure::Failed(error) = outcome {
                    request.fail(Box::new(error));
                }
                return Served::HandOn(request);
            }
        };
        let (counters, served) = (Arc::clone(&self.counters), self.served);
        let turn = request.end_turn();
        open.acknowledge(pending, move |outcome| {
            // Its handle does not close it before.
            let _plane = plane;
            match outcome {
                Ok(written) => {
                    let rejected = &written.rejected_indices;
                    let body = match verdict.status() {
                        (_, true) => Vec::new(),
                        _ => answer(&write_id, written.accepted_count, rejected, 0),
                    };
                    let id = new_request_id();
                    let bytes = (request.body().len() as u64, body.len());
                    counters.add(served, 1);
                    verdict.books.end(&counters, &id, began.elapsed(), &written, bytes);
                    let keep = request.keeps();
                    drop(request.answer(accepted(&verdict, &id, &body, keep)));
                }
                Err(error) => {
                    verdict.books.interrupt(&counters);
                    request.fail(Box::new(error));
                    request.put_back();
                }
            }
        });
        Served::Done(turn)
    }
}

impl Fast for Remembered {
    fn serve(&self, mut request: Request) -> Served {
        let Some(verdict) = self.verdict(&request) else { return Served::HandOn(request) };
        let Some(plane) = verdict.plane() else { return Served::HandOn(request) };
        if !Self::admits(&verdict, &mut request) {
            return Served::HandOn(request);
        }
        if request.is_body_due() {
            return match request.await_body() {
                Ok(turn) => Served::Done(turn),
                Err(request) => Served::HandOn(*request),
            };
        }
        self.write(verdict, plane, request)
    }

    fn tidy(&self) {
        self.verdicts.tidy(Instant::now());
    }
}

/// Appends a body. Nobody knows if an error that is no refusal has left it stored.
fn append(
    verdict: &Verdict,
    plane: &Plane,
    body: &[u8],
    now_ns: i64,
) -> Result<Pending, WriteError> {
    let (limits, when) = (verdict.limits.of_batch(), verdict.limits.acknowledge(None));
    let Some((mapping, protocol)) = &verdict.adapted else {
        return catching(|| Ok(plane.append(Format::Json, body, &limits, now_ns, when)))?;
    };
    // One with a faulty record is handed on as all that is refused, and nothing of it stored.
    let body = AdaptedBody { protocol: *protocol, mapping, is_partial: false, bytes: body };
    catching(|| Ok(plane.append_adapted(body, &limits, now_ns, when)))?
}

fn accepted(verdict: &Verdict, id: &[u8], body: &[u8], keep: bool) -> Answer {
    let (status, is_bodiless) = verdict.status();
    let length = if is_bodiless { BodyLength::Unsaid } else { BodyLength::Bytes(body.len()) };
    let fields = verdict
        .fields
        .iter()
        .map(|(name, value)| (&**name, if is_request_id(name) { id } else { &**value }));
    // The same fields have been in a head before.
    let mut head = answer_head(status.as_bytes(), keep, fields, length).unwrap_or_default();
    head.extend_from_slice(body);
    Answer { head, ..Answer::default() }
}

fn is_request_id(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"X-Request-Id")
}

/// A head whose connection goes on, in front of a body of a known length within its owner's share.
fn is_plain(request: &Request) -> bool {
    let Asked::Whole { head, framing } = request.asked() else { return false };
    head.minor_version() == 1
        && !head.closes()
        && !head.expects_continue()
        && !head.is_chunked()
        && framing.is_buffered
        && !request.is_over_share()
}
