//! The paths of each listener, and the needs of a request for each path.

/// The language of the body of a write, of a question or of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// JSON of this service.
    Json,
    /// Line protocol, by the rules of this version of `InfluxDB`.
    Lines(u8),
    /// Remote write of Prometheus.
    RemoteWrite,
    /// Metrics of OpenTelemetry.
    Otlp,
    /// Parameters of a question, as a form of a web page sends them.
    Form,
    /// Remote read of Prometheus.
    RemoteRead,
}

impl Language {
    /// Returns the content codings that a body may have. If `identity` is missing, the body must be
    /// coded.
    #[must_use]
    pub fn codings(self) -> &'static [&'static str] {
        match self {
            Self::Json | Self::Form => &["identity"],
            Self::Lines(_) | Self::Otlp => &["identity", "gzip"],
            Self::RemoteWrite | Self::RemoteRead => &["snappy"],
        }
    }

    /// Returns the content type that a body of another protocol must have, if it must have one.
    pub(super) fn media_type(self) -> Option<&'static str> {
        match self {
            Self::RemoteWrite | Self::RemoteRead | Self::Otlp => Some("application/x-protobuf"),
            Self::Form => Some("application/x-www-form-urlencoded"),
            Self::Json | Self::Lines(_) => None,
        }
    }

    /// Returns the protobuf message of a body, which the content type may name by `proto`.
    pub(super) fn message(self) -> Option<&'static str> {
        (self == Self::RemoteWrite).then_some("prometheus.WriteRequest")
    }
}

/// Part of a path that stands for any name.
const NAME: &str = "{name}";

/// A path, and the needs of a request for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The path, which is matched exactly. `{name}` stands for one part without
    /// slash or escapes.
    pub path: &'static str,
    /// The methods without HEAD and OPTIONS, which follow from them.
    pub methods: &'static [&'static str],
    /// If true, a request needs a valid key.
    pub is_authenticated: bool,
    /// The scope that the key needs.
    pub scope: Option<&'static str>,
    /// The language of the body of a POST. A write also needs the entitlement.
    pub language: Option<Language>,
}

impl Route {
    /// Returns true if a request for this path is a write.
    #[must_use]
    pub fn is_ingest(&self) -> bool {
        let is_read = |language| matches!(language, Language::Form | Language::RemoteRead);
        self.language.is_some_and(|language| !is_read(language))
    }

    /// Returns the language of the body of a request with this method, if it has a body.
    pub(super) fn body_language(&self, method: &str) -> Option<Language> {
        self.language.filter(|_| method == "POST")
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let Some((before, after)) = self.path.split_once(NAME) else { return self.path == path };
        let name = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        name.is_some_and(|name| !name.is_empty() && !name.contains(['/', '%']))
    }

    /// Returns the methods, with HEAD and OPTIONS.
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
        Self { path, methods: &["GET"], is_authenticated: false, scope: None, language: None }
    }

    const fn read(path: &'static str, scope: Option<&'static str>) -> Self {
        Self { path, methods: &["GET"], is_authenticated: true, scope, language: None }
    }

    const fn question(path: &'static str) -> Self {
        let (scope, language) = (Some("topology:read"), Some(Language::Form));
        Self { path, methods: &["GET", "POST"], is_authenticated: true, scope, language }
    }

    const fn remote_read(path: &'static str) -> Self {
        let (scope, language) = (Some("topology:read"), Some(Language::RemoteRead));
        Self { path, methods: &["POST"], is_authenticated: true, scope, language }
    }

    const fn write(path: &'static str, language: Language) -> Self {
        let (scope, language) = (Some("telemetry:write"), Some(language));
        Self { path, methods: &["POST"], is_authenticated: true, scope, language }
    }
}

/// Writes of JSON. Writes by gRPC need the same rights.
pub const TELEMETRY: Route = Route::write("/telemetry", Language::Json);

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
    Route::write("/write", Language::Lines(1)),
    Route::write("/api/v2/write", Language::Lines(2)),
    Route::write("/api/v3/write_lp", Language::Lines(3)),
    Route::write("/api/v1/write", Language::RemoteWrite),
    Route::write("/v1/metrics", Language::Otlp),
    Route::read("/arrow/v1/scan", Some("topology:read")),
    Route::read("/forecasts/v1/risk", Some("predictions:read")),
    Route::question("/api/v1/query"),
    Route::question("/api/v1/query_range"),
    Route::question("/api/v1/series"),
    Route::question("/api/v1/labels"),
    Route::question("/api/v1/label/{name}/values"),
    Route::question("/api/v1/metadata"),
    Route::question("/api/v1/status/buildinfo"),
    Route::remote_read("/api/v1/read"),
];
