//! The paths of each listener, and what a request for one of them needs.

/// Rules for the body of a write.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyRules {
    /// JSON, as it is.
    Json,
    /// A body of another protocol.
    Adapted {
        /// Content codings that it may have; without `identity`, one that it must have.
        codings: &'static [&'static str],
        /// Content types that it may have; empty for any.
        media_types: &'static [&'static str],
        /// The protobuf message, which the content type may name by `proto`.
        message: Option<&'static str>,
    },
}

/// A path, and what a request for it needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The path, which is matched exactly.
    pub path: &'static str,
    /// The methods, without HEAD and OPTIONS, which follow from them.
    pub methods: &'static [&'static str],
    /// A valid key is needed.
    pub is_authenticated: bool,
    /// The scope that the key needs.
    pub scope: Option<&'static str>,
    /// Rules for the body of a write, which needs the entitlement as well.
    pub body: Option<BodyRules>,
}

impl Route {
    /// Returns true if a request for it is a write.
    #[must_use]
    pub fn is_ingest(&self) -> bool {
        self.body.is_some()
    }

    /// The methods, with those that follow.
    #[must_use]
    pub fn allowed(&self) -> Vec<&'static str> {
        self.all_methods().collect()
    }

    pub(super) fn allows(&self, method: &str) -> bool {
        self.all_methods().any(|each| each == method)
    }

    fn all_methods(&self) -> impl Iterator<Item = &'static str> {
        let head = self.methods.contains(&"GET").then_some("HEAD");
        self.methods.iter().copied().chain(head).chain(["OPTIONS"])
    }

    const fn open(path: &'static str) -> Self {
        Self { path, methods: &["GET"], is_authenticated: false, scope: None, body: None }
    }

    const fn read(path: &'static str, scope: Option<&'static str>) -> Self {
        Self { path, methods: &["GET"], is_authenticated: true, scope, body: None }
    }

    const fn write(path: &'static str, body: BodyRules) -> Self {
        let scope = Some("telemetry:write");
        Self { path, methods: &["POST"], is_authenticated: true, scope, body: Some(body) }
    }
}

const LINES: BodyRules =
    BodyRules::Adapted { codings: &["identity", "gzip"], media_types: &[], message: None };
const PROTOBUF: &[&str] = &["application/x-protobuf"];

/// Writes of JSON. Those of gRPC need the same rights.
pub const TELEMETRY: Route = Route::write("/telemetry", BodyRules::Json);

/// Every path of the public listener.
pub static PUBLIC_ROUTES: &[Route] = &[
    Route::open("/health"),
    Route::open("/health/telemetry"),
    Route::open("/health/topology"),
    Route::open("/health/predictions"),
    TELEMETRY,
    Route::read("/topology", Some("topology:read")),
    Route::read("/topology/series", Some("topology:read")),
    Route::read("/predictions", Some("predictions:read")),
    Route::read("/account/state", None),
];

/// Every path of the listener for other protocols.
pub static ADAPTER_ROUTES: &[Route] = &[
    Route::open("/ping"),
    Route::open("/health"),
    Route::write("/write", LINES),
    Route::write("/api/v2/write", LINES),
    Route::write("/api/v3/write_lp", LINES),
    Route::write(
        "/api/v1/write",
        BodyRules::Adapted {
            codings: &["snappy"],
            media_types: PROTOBUF,
            message: Some("prometheus.WriteRequest"),
        },
    ),
    Route::write(
        "/v1/metrics",
        BodyRules::Adapted { codings: &["identity", "gzip"], media_types: PROTOBUF, message: None },
    ),
];
