"""The compiled engine (`rust/py`). Only `fleetcast.engine` and `fleetcast.errors` import it.

Results have times as nanoseconds since 1970-01-01T00:00:00Z; calls take a `Time`. Every call that
touches a store leaves the GIL. A store must not be used in a child after a fork: open it there.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import (
    Any,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    Unpack,
    dataclass_transform,
    final,
)

from numpy import float64, int64
from numpy.typing import NDArray

from fleetcast.grpc.front import FrontOptions, WriteRules
from fleetcast.http.rules import ListenerRules
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.metrics.surfaces import EngineAccounting

EntitySort: TypeAlias = Literal["id", "time", "field"]
Interval: TypeAlias = Literal["15s", "30s", "1m", "5m", "15m", "1h"]
Aggregation: TypeAlias = Literal["mean", "min", "max", "last"]
Precision: TypeAlias = Literal["ns", "us", "ms", "s"]
FieldKind: TypeAlias = Literal["float", "bool", "text"]
Time: TypeAlias = datetime | int | str
"""A `datetime`, nanoseconds since 1970, or ISO 8601 text. A time without a zone is UTC."""

MEASUREMENTS: Final[tuple[str, ...]]
"""The six measurement names that the topology filter and the series read accept."""
INTERVALS: Final[tuple[str, ...]]
"""Aggregation windows, ascending."""
AGGREGATIONS: Final[tuple[str, ...]]

VERSION: Final[str]
"""Version of the package. Example: `0.3.0`."""

BATCH_RECORDS_MAX: Final[int]
"""Records of one batch over HTTP. Calls of a plane and the service's settings use these limits as
defaults. `rust/core/src/model/limits.rs` says what each limit protects.
"""
CALL_RECORDS_MAX: Final[int]
"""Records of one gRPC call."""
TAGS_MAX: Final[int]
"""Tags of one record, without the tags that the service stamps."""
FIELDS_MAX: Final[int]
"""Fields of one record."""
TENANT_FIELDS_MAX: Final[int]
"""Distinct fields of a tenant."""
TENANT_SERIES_MAX: Final[int]
"""Distinct series of a tenant."""
TENANT_NAMES_BYTES_MAX: Final[int]
"""Bytes of all names of a tenant, as they are stored."""
POINTS_MAX: Final[int]
"""Points (rows over all entities) of one series answer: the default of `point_budget`."""
ANSWER_VALUES_MAX: Final[int]
"""Values of one series answer, times and nulls included."""
HISTORY_DAYS_MAX: Final[int]
"""Days before now that a series read may reach: the default of `history_horizon_days`."""
RAW_SPAN_SECONDS_MAX: Final[int]
"""Seconds that a raw series read may span: the default of `raw_span_seconds`."""

class Refused(Exception):
    """A request that the contract refuses. `args` is `(code, context)`.

    Codes and their context: `schema_faults` (`detail`: list of `{"type", "loc", "msg"}`),
    `batch_too_large` (`max`, `received`), `invalid_input` (`field`), `field_type_conflict`
    (`field`), `unknown_measurement` (`allowed`), `agg_requires_interval`, `invalid_range`,
    `history_horizon_exceeded` (`horizon_days`), `interval_required` (`min_interval`),
    `interval_too_fine` (`min_interval`).
    """

    args: tuple[str, dict[str, object]]

class InvalidKey(Refused):
    """`auth_failed` for a key that was sent and is invalid. The lockout counts only such keys."""

class TenantFull(Refused):
    """A batch with names that are new to the store and would take it past a bound on names.

    Its code is `invalid_input`. `field` is `tags` for the series or the bytes of all names, and
    `fields` for the fields of the store. Batches with existing names are still accepted.
    """

    bound: str
    """Name of the bound, as `Plane.write_json` takes it."""

class StoreError(Exception):
    """A fault of the machine or of the files. The message names the fault and says what to do.

    The plain class, without a subclass, is an internal fault: a bug that ended one call. Close the
    store and open it again.
    """

class StoreMissing(StoreError):
    """The store to be opened does not exist."""

class StoreExists(StoreError):
    """The store to be made already exists."""

class StoreDamaged(StoreError):
    """Stored bytes are damaged or were written with another key."""

class StoreFull(StoreError):
    """The device is full. No byte of the write was stored; the caller may try again."""

class StoreUnavailable(StoreError):
    """The system or LMDB refused an operation, or the store was closed during the call."""

class StoreUnreachable(StoreUnavailable):
    """The engine of the store is unreachable and the store is unchanged, or the engine did not
    answer and the change may be stored. The message says which. The handle works again as soon as
    the engine is back.
    """

class RecordsUnavailable(StoreError):
    """Small records cannot be read or written now; the message says why."""

def is_clock_believed() -> bool:
    """Returns true if this process has seen the wall clock run for an hour without a step."""

def parse_time(text: str) -> int:
    """Returns the nanoseconds of an ISO 8601 datetime, limited to the int64 range.

    A value without offset is read as UTC. Raises `ValueError` if the text is not a datetime.
    Example: `1970-01-01T00:00:01+00:00` gives 1,000,000,000.
    """

def format_time(time_ns: int) -> str:
    """Formats a time with 0, 3, 6 or 9 fractional digits. Example: `2026-01-31T12:00:00Z`."""

def time_ns(time: object) -> int:
    """Nanoseconds since 1970 of a `datetime`, an ISO 8601 text, or nanoseconds since 1970.

    A time without a zone is UTC. Raises `ValueError` for other text, `TypeError` for other types.
    """

def encode_json(records: list[Any], *, datetimes: bool) -> bytes | None:
    """Encodes records as the JSON body of a write, without spaces. With `datetimes`, a `datetime`
    becomes ISO 8601 text.

    Returns `None` if the records hold a value other than `dict` with `str` keys, `list`, `tuple`,
    `str`, `bool`, `int` of 64 bits, finite `float` and `None`. Python's encoder then decides.
    """

def encode_protobuf(records: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Encodes each record as a field of a `WriteRequest`. A request is the fields joined.

    A record has `measurement`, `time` in a form that `time_ns` takes, and optionally `tags` and
    `fields`, which keep their order. Raises `KeyError` if a member is missing, `TypeError` and
    `ValueError` for values that a record cannot hold, `OverflowError` for an integer beyond the
    largest double.
    """

def note_unreadable(tenant: str, key_id: str, process: str, result: WriteResult) -> None:
    """Logs a line about records of a batch that no read can show, at most once a minute."""

def write_served(
    request_id: str,
    method: str,
    route: str,
    status: int | str,
    error: str | None,
    tenant: str | None,
    key_id: str | None,
    client: str,
    seconds: float,
    bytes_in: int,
    bytes_out: int,
    process: str,
) -> None:
    """Writes one line of the access log to stderr: the members of a `log_lines.Served`.

    The lines of a client whose requests are refused, or need no key, are bounded.
    """

def refusal_is_logged(client: str, /) -> bool:
    """Returns true if a line about a client that is refused, or has no key, is to be written now.

    A client gets 10 lines a second, and all clients of the process get 100. `client` is an address.
    Over gRPC it has a port, which does not count. Example: `ipv4:10.0.0.7:50112` counts as
    `ipv4:10.0.0.7`.
    """

def name_process(process: str, /) -> None:
    """Names this process in its lines about lines that were left out."""

def tell_left_out() -> None:
    """Writes how many lines of which clients were left out, if any were."""

def routes(is_adapters: bool) -> list[tuple[str, list[str], bool, str | None, bool, list[str]]]:
    """Returns the routes of the public listener, or of the listener for other protocols.

    A route is its path, all methods, and true if it needs a key. Then follow the scope that it
    needs, true if it is a write, and the content codings of a body of another protocol.
    """

def key_fields(is_adapters: bool) -> list[str]:
    """Returns the header fields that may hold a key. The first field that a request has decides."""

def is_acceptable(request: bytes, *, tags_max: int, fields_max: int) -> bool:
    """Returns true if a tenant without series and fields could write this `WriteRequest`. It may
    hold at most `BATCH_RECORDS_MAX` records. Records that are rejected one by one do not matter.
    """

def field_of_column(column: str) -> str:
    """Returns the name of the field in a column of a scan."""

def column_of_field(field: str, kind: FieldKind) -> str:
    """Returns the name of the column of a scan for values of one type of a field.

    Raises `ValueError` for another type.
    """

@final
class WriteResult:
    """Result of a write. Example: `WriteResult(accepted=998, rejected=2)`."""

    def answer(self) -> bytes:
        """The body of the answer to a write over HTTP."""
    write_id: Final[str]
    """UUIDv7 of the write."""
    accepted_count: Final[int]
    """Records that were stored."""
    rejected_indices: Final[list[int]]
    """Indices of rejected records, ascending and zero-based; empty if there are none.

    The service rejects a record alone if it is older than the year 2000 or has no fields.
    """
    dropped: Final[list[tuple[int, str, str, str]]]
    """The first hundred rejected records of another protocol: number of the line or value from
    1, code, place in the record such as `fields.x`, and a sentence.
    """
    line_count: Final[int]
    """Lines of a text that was written; 0 for a body without lines."""
    clamped_count: Final[int]
    """Accepted records whose time lay in the future and was set to the ingest instant."""
    no_entity_count: Final[int]
    """Accepted records without `entity_id`, which only a scan shows."""
    other_measurement_count: Final[int]
    """Other accepted records, of measurements that the service does not serve."""
    commit_seconds: Final[float]
    """Seconds until the batch was durable, waits for commits of other batches included."""

class RecordBounds(TypedDict, total=False):
    """Bounds on a record and on the whole store, see `Plane.write_json`."""

    tags_max: int
    fields_max: int
    tenant_fields_max: int
    tenant_series_max: int
    tenant_names_bytes_max: int

class _BatchBounds(RecordBounds, total=False):
    """Further bounds on a batch, and on batches that wait with it."""

    batch_records_max: int
    buffer_bytes_max: int | None

@final
class NameMapping:
    """Names of other protocols, and the names under which they are stored.

    `rules` are keyed by the name of the source: a measurement or a metric. A rule is the
    measurement to store it under (`None` keeps the name), a prefix for the names of its fields, and
    a tag. The tag is stored as `entity_id` if the record has no `entity_id` (`None` for no tag).
    `others` is the rule for every other name.
    """

    def __new__(
        cls,
        rules: Sequence[tuple[str, tuple[str | None, str, str | None]]],
        others: tuple[str | None, str, str | None],
    ) -> Self: ...

@final
class TextFormat:
    """A format of texts with one record in each line."""

    @staticmethod
    def json() -> TextFormat:
        """A JSON object on each line, like an element of the array of `Plane.write_json`. A line
        that is not JSON, or not an object, is `json_invalid` or `model_attributes_type` at the
        index of its record.
        """
    @staticmethod
    def lines(precision: Precision) -> TextFormat:
        """Line protocol as in `Plane.write_lines`. Raises `ValueError` for an unknown precision."""
    @staticmethod
    def csv(
        columns: Sequence[tuple[Sequence[str], tuple[str, FieldKind | None] | None]],
        *,
        time: int,
        time_unit: Precision | None,
        measurement: str | None,
        measurement_column: int | None,
        fixed_tags: Sequence[tuple[str, str]],
    ) -> TextFormat:
        """Comma-separated values (RFC 4180) without their header.

        A column has the names of its tags and the name and type of its field. A column without a
        type takes the type of its first cell that holds text. An empty cell is no value, and so is
        `nan` in a column of numbers; `""` is an empty text. A row with too few or too many cells is
        `model_attributes_type`. A row that is not UTF-8 or has wrong quotes is `line_invalid`. A
        cell that does not fit the type of its column is located by `cell` and its index. Raises
        `ValueError` for an index without a column, or an unknown type or unit.
        """
    @staticmethod
    def cells(row: str) -> list[str] | None:
        """Splits a row of CSV into cells. Returns `None` if the quotes are wrong."""
    def kinds(self) -> list[FieldKind | None]:
        """The types of the columns of CSV that are known so far."""
    def records(
        self, body: bytes, end: int | None = None
    ) -> tuple[list[tuple[int, int, int]], int | None]:
        """Returns the start and end of each record with the number of its line, from 0. Second,
        returns the start of the first record with an open quote, or `None`: that record may go on
        after the end of the text.
        """

@final
class Stats:
    """Counts of a store: its rows, values and series, and its bytes on disk."""

    rows: Final[int]
    """Records stored."""
    values: Final[int]
    """Field values stored."""
    batches: Final[int]
    """Accepted batches with at least one stored record."""
    rejected: Final[int]
    """Records rejected per record since the store was made."""
    series: Final[int]
    """Distinct (measurement, tag set)."""
    log_bytes: Final[int]
    """Bytes of the sealed blocks in the log."""
    stored_rows: Final[int]
    """Records stored now, without the records that retention removed from disk."""
    stored_values: Final[int]
    """Field values stored now."""
    segments: Final[int]
    """Segments that the log was compacted into."""
    generation: Final[int]
    """Number of times that the list of segments was replaced, by compactions and deletes."""
    stored_bytes: Final[int]
    """Bytes on disk: the sum of the four counts below."""
    log_file_bytes: Final[int]
    """Bytes of the log's files, including reserved space."""
    segment_bytes: Final[int]
    """Bytes of the segments."""
    names_bytes: Final[int]
    """Bytes of names, of the list of segments and of small entries in tables."""
    free_bytes: Final[int]
    """Unused bytes of the file of the tables."""

@final
class Compacted:
    """Result of a compaction."""

    blocks: Final[int]
    """Blocks of the log that are now in segments."""
    merged: Final[int]
    """Segments that were merged into others."""
    expired: Final[int]
    """Segments that retention removed, whole or by days."""
    held: Final[int]
    """Segments that retention would remove, whole or by days, if the clock were trusted."""
    purged: Final[int]
    """Segments from which deleted rows were removed."""
    bytes_written: Final[int]
    """Bytes written into segments."""

@final
class Deleted:
    """Counts of the rows that a delete hides."""

    rows: Final[int]
    """Rows that the delete hides."""
    entities: Final[int]
    """Entities of these rows; the same id in two measurements counts twice."""
    measurements: Final[list[str]]
    """Measurements of these rows, ascending."""
    first_ns: Final[int | None]
    """Time of the first of these rows in nanoseconds since 1970; `None` without rows."""
    last_ns: Final[int | None]
    """Time of the last of these rows, in the same form."""
    hours: Final[int]
    """Kept hours that the delete hides. Their rows have expired."""

@final
class KeptHours:
    """Hours that outlive their rows."""

    seconds: Final[int | None]
    """How long hours are kept, in seconds; `None` if they go with their rows."""
    hours: Final[int]
    """Hours that are kept; an hour of an entity counts once."""
    bytes: Final[int]
    """Bytes of their segments."""
    first_ns: Final[int | None]
    """Start of the first hour in nanoseconds since 1970; `None` without hours."""
    last_ns: Final[int | None]
    """Start of the last hour, in the same form."""

@final
class Upcoming:
    """Work left for `Plane.compact`, and its due time if no batch is written until then."""

    retention_seconds: Final[int | None]
    """How long rows are kept, in seconds; `None` for ever."""
    generation: Final[int]
    """Times that the list of segments was replaced."""
    log_bytes_due: Final[int]
    """Size of the log, in bytes, at which it is compacted at once."""
    log_since_ns: Final[int | None]
    """Ingest instant of the log's oldest block; `None` if the log is empty."""
    due_ns: Final[int | None]
    """When the next work is due: a day to merge, rows past retention, or deleted rows to
    remove.
    """

@final
class Verified:
    """Result of a check of a whole store."""

    blocks: Final[int]
    """Blocks of the log."""
    segments: Final[int]
    """Segments, without the checkpoint."""
    rows: Final[int]
    """Records in the log and the segments."""
    values: Final[int]
    """Field values in the log and the segments."""
    damages: Final[list[str]]
    """A line for each damage; empty if the store is sound."""

@final
class Saved:
    """A store as `Plane.save` saved it."""

    files: Final[list[tuple[str, int, bytes]]]
    """Name in the folder, length and SHA-256 of each file, also of files of earlier backups."""
    bytes_written: Final[int]
    """Bytes of files that this backup wrote."""
    bytes_linked: Final[int]
    """Bytes of segments that were linked into the backup instead of copied."""
    rows: Final[int]
    """Records in the backup."""
    values: Final[int]
    """Field values in the backup."""
    content: Final[bytes]
    """Hash (32 bytes) over everything that decides answers."""

@final
class ArrowStream:
    """Columns of an answer. Any Arrow library takes them, as often as it likes.

    A notebook shows the first rows. Example: `polars.DataFrame(stream)`.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of one batch."""
    def __arrow_c_schema__(self) -> object:
        """The names and types of the columns."""
    def _repr_html_(self) -> str: ...

@final
class RowStream:
    """Rows of a scan. Any Arrow library takes the remaining rows. Example:
    `polars.DataFrame(rows)`.

    Iteration returns batches of about 8 MiB; a batch is larger only if a single row is. The stream
    keeps segments on disk until it is read or dropped. Once all rows were taken, the next use scans
    the store again, for all rows.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a table. Raises `ValueError` as `check_table` does, `StoreError`."""
    def __arrow_c_schema__(self) -> object:
        """The names and types of the columns. Raises `ValueError` as `check_table` does."""
    def messages(self, rows_max: int | None = None) -> RowMessages:
        """The rows as bytes in Arrow's IPC streaming format, message by message.

        The stream ends after the batch with row `rows_max`. Raises as `__arrow_c_stream__`.
        """
    def check_table(self) -> None:
        """Raises `ValueError` if the rows have more than 4,096 fields, too many for a table."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> RowBatch:
        """The next batch. Raises `StoreError`."""

@final
class RowMessages:
    """Messages of a stream in Arrow's IPC format; the pieces joined are the stream."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes:
        """Returns the next message; a long message is a `memoryview`. Raises `StoreError`."""

@final
class RowBatch:
    """Rows of one measurement. Any Arrow library takes them, as often as it likes."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a table. Raises `ValueError` as `RowStream.check_table` does."""
    def __arrow_c_schema__(self) -> object:
        """The names and types of the columns. Raises as `__arrow_c_stream__`."""
    def __len__(self) -> int:
        """Number of rows that `json_lines` has not returned."""
    def json_lines(self) -> bytes:
        """Takes the next rows, about 1 MiB of lines. Each line is a record as in `write_json`.

        Returns empty bytes if no row is left.
        """

@final
class ArrowWrites:
    """Pieces of a stream. Each piece is written when the caller asks for it."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> WriteResult: ...

@final
class LongAnswer:
    """An answer that is made piece by piece, as of the instant of its request.

    It holds the values that still have to be encoded. The front takes the answer itself instead of
    its pieces.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes:
        """Returns the next piece; a long piece is a `memoryview`."""
    def when_over(self, call: Callable[[int], object], /) -> None:
        """Calls `call` once, with the bytes that were made, when the answer ends or is given up."""

@final
class Authenticator:
    """Checks keys for one environment. Safe to share between threads."""

    def __new__(cls, records: Records, pepper: str, environment: str) -> Self:
        """`records` has the keys and tenants, and the secret of the hashes under the label
        `pepper`.
        """
    def identify(self, key: str | None, *, now: int) -> Identity:
        """Returns the identity of a key's text, as of `now` in seconds since 1970.

        Raises `InvalidKey`, `Refused` (`auth_failed` without a key, `tenant_unknown`,
        `tenant_disabled`), `RecordsUnavailable`.
        """

@final
class Decision:
    """The decision about one request."""

    address: Final[str]
    """Address of the client, in the form that limits use."""
    path: Final[str | None]
    """The path of the route; `None` if no route matches."""
    identity: Final[Identity | None]
    """The identity, after it was found."""
    plane: Final[Plane | None]
    """The store of the account, after it was opened."""
    events: Final[list[str]]
    """Events for the audit log."""
    key_id: Final[str | None]
    """Id in the key that the events are about, if the key has a valid form."""
    is_over_share: Final[bool]
    """True if the request is beyond the share of its account."""
    fault: Final[str | None]
    """Why the store of the account cannot be opened, for the log."""
    def check(self) -> Literal["serve", "options", "await body"]:
        """Returns the next step. Raises `Refused`, `RecordsUnavailable`, `StoreUnreachable`."""

@final
class LimiterFile:
    """Request rate and lockout per client. All processes that use the same file count together.

    The first call opens the file, and makes it if it is missing or from an earlier boot. A limit of
    0 is off. An address is an IPv4 or IPv6 address in text. `now_ns` replaces the clock,
    nanoseconds since the boot. Methods raise `StoreUnavailable` and `StoreFull` if the file cannot
    be used. A `Service` lets requests pass after such a fault.
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        on_fault: Callable[[str], object] | None = None,
        *,
        requests_per_minute: int,
        lockout_failures: int,
        lockout_window_seconds: int,
        lockout_seconds: int,
    ) -> Self:
        """`on_fault` is called with each fault that lets a request pass.

        Raises `OverflowError` for a limit that does not fit 32 bits.
        """
    def admit(self, address: str, *, now_ns: int | None = None) -> int | None:
        """Counts a request. Returns the whole seconds to wait, at least 1, if it is refused."""
    def lockout(self, address: str, *, now_ns: int | None = None) -> int | None:
        """Returns the whole seconds, at least 1, that the client stays locked out; else `None`."""
    def record_failure(self, address: str, *, now_ns: int | None = None) -> None:
        """Counts a failure, which may lock the client out."""

@final
class Service:
    """Decides about the requests of one listener, and answers reads and writes of telemetry."""

    def __new__(
        cls, authenticator: Authenticator, planes: OpenPlanes, rules: ListenerRules
    ) -> Self: ...
    def decide(self, environ: dict[str, Any], *, body_bytes: int = 0) -> Decision:
        """Decides about a request of WSGI, of whose body `body_bytes` bytes have arrived."""
    def common_fields(
        self, request_id: str, origin: str | None, allow: str | None = None
    ) -> list[tuple[str, str]]:
        """Header fields of every answer. `allow` is the field of an answer to OPTIONS."""
    def content(self, body: bytes | Piece, content_encoding: str | None) -> bytes | Piece:
        """Decodes a body with this `Content-Encoding`: gzip, or a block of snappy.

        Raises `Refused`: `request_too_large` beyond the bytes that a body may have or 1,024 members
        of gzip, `invalid_input` (`field`: `payload`) if the body does not match its coding.
        """
    def write(self, plane: Plane, path: str, query: str, content: bytes | Piece) -> WriteResult:
        """Writes the content of a body for `path` as one batch.

        The listener for other protocols rejects a faulty record alone (`WriteResult.dropped`). In
        bodies of Prometheus and OpenTelemetry, values of one set of tags and one time are one
        record; numbers are the numbers of series and of data points. With `accept_partial=false`
        for lines, a faulty record refuses the whole body with `schema_faults`, whose locations are
        these numbers, from 1.

        Raises as `Plane.write_json`; `invalid_input` (`field`) for an unknown `precision` or
        `accept_partial`, and for a body that is not a message (`payload`); `ValueError` for a path
        without writes.
        """
    @staticmethod
    def latest(plane: Plane, query: str) -> list[bytes | memoryview] | LongAnswer:
        """Returns the body of `GET /topology` for this query string. Raises `Refused`,
        `StoreError`.
        """
    def series(self, plane: Plane, query: str) -> list[bytes | memoryview] | LongAnswer:
        """Returns the body of `GET /topology/series`. Raises `Refused`, `StoreError`."""
    def forecast_question(
        self, query: str, *, other: str | None = None
    ) -> tuple[ForecastQuestion, list[bytes]]:
        """Reads the parameters of `GET /predictions` from a query string.

        Returns the values of `other`, one more parameter that the path takes, as they were sent.
        Raises `Refused`.
        """
    def ask(
        self, plane: Plane, path: str, query: str, form: bytes | Piece
    ) -> tuple[int, str | None, list[memoryview]]:
        """Answers a path of Prometheus' HTTP API, whose parameters are in `query` and in `form`.

        Returns status, error type (`None` if the answer is no error), and the pieces of the body.
        The bounds are `adapters.query_samples_max` and `adapters.query_seconds_max`. Raises
        `StoreError`.
        """
    def read(
        self, plane: Plane, message: bytes | Piece
    ) -> tuple[str, tuple[int, str | None, list[memoryview]]]:
        """Answers remote read of Prometheus, a `ReadRequest` that is not compressed.

        Returns the content type, and an answer as `ask`. The body is JSON of an error, a
        `ReadResponse` in snappy (`application/x-protobuf`), or frames with a `ChunkedReadResponse`
        each. Raises `StoreError`.
        """

@final
class Serving:
    """Lets a front decide about requests, and serve reads and writes of telemetry."""

    def __new__(cls, renew: Callable[[], Service], accounting: EngineAccounting) -> Self:
        """`renew` returns the service for the settings in force. Raises `OSError`."""

@final
class GrpcFront:
    """The sockets and calls of one gRPC process, on threads without the interpreter.

    It serves from the moment that it is made, in a process that does not fork.
    """

    def __new__(
        cls,
        authenticator: Authenticator,
        planes: OpenPlanes,
        rules: Callable[[], WriteRules],
        accounting: EngineAccounting,
        options: FrontOptions,
    ) -> Self:
        """`rules` returns the rules of the settings in force.

        Raises `OSError`, which names the file if a certificate cannot be used, and `ValueError` for
        an unknown status.
        """
    def next_events(self, seconds: float, /) -> list[EndedCall | GrpcNotice]:
        """Returns the next events; an empty list after `seconds` without an event.

        The next call confirms the events: only then are the ended calls answered. For one thread.
        """
    def is_alive(self, seconds: float, /) -> bool:
        """Returns true if the loops respond within `seconds`."""
    def stop(self, seconds: float, /) -> None:
        """Refuses new calls, and waits at most `seconds` for calls that have begun."""

@final
class EndedCall:
    """A call that has ended, other than a write that was stored."""

    request_id: Final[str]
    route: Final[str]
    """`Service/Method`, with the last part of the service's name."""
    status: Final[str]
    """Name of the status."""
    error: Final[str | None]
    """The error code, if the call was refused."""
    identity: Final[tuple[str, str, str] | None]
    """Account, name of the tenant and id of the key, if the key is known."""
    client: Final[str]
    """Address and port, as gRPC spells them."""
    seconds: Final[float]
    bytes_in: Final[int]
    bytes_out: Final[int]
    bad_key: Final[str | None]
    """The text of an invalid key. The audit log records only its id."""
    fault: Final[str | None]
    """A fault of the machine, for the log."""
    bound: Final[str | None]
    """The setting that the tenant's names would have exceeded."""
    is_over_share: Final[bool]
    """True if the account, or the address, already held its share."""

@final
class GrpcNotice:
    """An event of the gRPC listener."""

    event: Final[str]
    problem: Final[str | None]

@final
class Front:
    """The sockets of one HTTP worker. One thread runs `turn`; `threads_max` other threads wait in
    `next_request`.

    Waiting threads do not hold the GIL. Open the front after a fork.
    """

    def __new__(
        cls,
        listeners: Sequence[int],
        *,
        threads: int,
        processes: int,
        limits: ConnectionLimits,
        key_fields: list[str],
        server: tuple[str, int],
        settings: int | None = None,
        serving: Serving | None = None,
    ) -> Self:
        """A front for descriptors of listening sockets, which it duplicates.

        One tenant gets `threads` of the threads. `processes` fronts share the cores. `key_fields`
        are the header fields that may hold a key; the first that a request has says whose share it
        counts for. `server` is the name and port for the application. `settings` is a descriptor of
        memory whose first word is the version of the settings in force. With `serving` the front
        decides about requests, and serves reads and writes of telemetry. Raises `OSError`.
        """
    threads_max: Final[int]
    """Threads that should wait for requests: twice the threads of one tenant."""
    def watch(self, pipe: int, /) -> None:
        """Ends a turn early when `pipe` has bytes to read, and reads them away. The pipe must not
        block.

        Raises `OSError`.
        """
    def set_limits(self, limits: ConnectionLimits, /) -> None:
        """Applies limits from the next head of each connection."""
    def turn(self, seconds: float, /) -> list[str]:
        """Serves sockets for `seconds`. A turn ends early at a byte in the watched pipe, a signal,
        another version of the settings, or the end of the last connection after `stop_accepting`.

        Returns a message for each connection that was lost to a fault of the front. Raises
        `OSError`.
        """
    def next_request(self, last: FrontRequest | None = None, /) -> FrontRequest | None:
        """Sends the answer to the thread's last request and waits for the next request.

        Returns `None` when the thread must end. If the last request has no answer, its connection
        is closed.
        """
    def stop_accepting(self) -> None:
        """Takes the connections that already wait, then no more.

        Requests under way go on, and each connection ends with its answer.
        """
    def end_threads(self) -> None:
        """Ends the threads when no request waits any more."""
    def close(self) -> None:
        """Closes every socket at once."""
    def held(self) -> tuple[int, int, int, int]:
        """Returns open connections, requests that wait for a thread, bytes of answers that clients
        have not yet taken, and requests that threads have taken so far.
        """

@final
class FrontRequest:
    """A request in the hands of one thread.

    All members except `malformed` raise `RuntimeError` after the request has its answer.
    """

    malformed: Final[str | None]
    """The error code of a head that the parser refuses, else `None`."""
    peer_address: Final[str]
    """Address of the peer, without the port; empty if the peer has no address."""
    def environ(self) -> dict[str, Any]:
        """Returns the WSGI environment of a request with a whole head. Call it once before each run
        of the application, as the body moves into the environment.

        `fleetcast.body` is the body, a `Piece`. `wsgi.input` is the same object, which is no
        file. `fleetcast.decision` is the `Decision` of a front that decides. `fleetcast.failed` is
        the exception of a failed attempt to serve the request: raise it, as a batch may be stored.
        Under a front that does not decide, the application decides (`Service.decide`).

        If `fleetcast.body_due` is true, the body has not been received. An application that needs
        it answers `100 Continue`. When the body is complete, the application is asked again, with
        `fleetcast.admitted`. Refuse a request if `fleetcast.over_share` is true, or if
        `fleetcast.claim` returns false for its account. If `fleetcast.oversized` is true, the body
        is not read.
        """
    def claim(self, account_id: str, /) -> bool:
        """Counts the request for the account of its key. Returns false if the account is over its
        share.
        """
    def await_body(self) -> bool:
        """Has the body received and the request handed out again. Returns false if that is beyond
        the share of its owner: refuse the request, which is `over_share` then.
        """
    def answer(
        self,
        status: str,
        fields: Sequence[tuple[str, str]],
        chunks: Sequence[bytes | memoryview] | LongAnswer,
    ) -> None:
        """Sets the answer, which the next call of `next_request` sends. Long chunks are not copied.

        A `LongAnswer` is made while the client takes it, in chunks, or up to the end of the
        connection for HTTP/1.0. Raises `ValueError` for text that a header cannot hold.
        """
    def refuse(self, whole_answer: bytes, /) -> None:
        """Sends `whole_answer` as it is, and then ends the connection."""

@final
class Piece:
    """The body of a request, or a long piece of an answer, read in place."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class MasterKeys:
    """The master keys that a process knows. There are two while the master key turns."""

    def __new__(cls, master_key: bytes, known: Callable[[], list[bytes]]) -> Self:
        """Begins with `master_key`. `known` returns the keys in force, newest first.

        It is called in any thread, when a stored key or record does not open, by one thread at a
        time. If it returns no key, the known keys stay. Raises `ValueError` for a key that has not
        32 bytes.
        """

def seal_secret(master_key: bytes, place: str, secret: bytes) -> bytes:
    """Seals a secret of 32 bytes under a master key. It opens only for the same `place`."""

def open_secret(master_key: bytes, place: str, sealed: bytes) -> bytes:
    """Opens the bytes of `seal_secret`. Raises `StoreDamaged`, also for another master key."""

@final
class Planes:
    """The stores of all tenants of an installation, each named by its account id.

    Every method raises `StoreUnavailable`, and `ValueError` for a key that has not 32 bytes.
    """

    @staticmethod
    def in_directory(directory: str | os.PathLike[str]) -> Planes:
        """Each store in a folder of `directory` that has the store's name. The folders need not
        exist.
        """
    @staticmethod
    def in_cluster(cluster: Cluster) -> Planes:
        """Each store in the database and the objects of `cluster`. The names are UUIDs.

        A name is never used again. Backups of these stores, and restores into them, work like any
        other.
        """
    def create(self, plane: str, master_key: bytes | MasterKeys) -> None:
        """Makes an empty store with a new data key, wrapped by `master_key` (32 bytes).

        Raises `StoreExists` if the store exists or its folder is not empty, and `StoreFull`.
        """
    def open(self, plane: str, master_key: bytes | MasterKeys, tenant_key: str) -> Plane:
        """Opens the store of the tenant whose slug is `tenant_key`.

        The call waits for no writer. It waits at most 2 seconds for calls of this process that
        still run after `close`. Raises `StoreMissing`, `StoreDamaged` (also for another master
        key).
        """
    def destroy(self, plane: str) -> None:
        """Destroys the data key of a store, then as much of the rest as can be removed now.

        A store that is already gone is no error. Raises only if the key may still exist.
        """
    def counts(self, plane: str) -> Stats:
        """Counters of a store as of the last commit of any process, read without its key, its rows,
        a lock or a sync.

        In a directory the call takes microseconds and never waits. Any process may have the store
        open, including this process. Raises `StoreMissing`, `StoreDamaged`.
        """
    def verify(self, plane: str, master_key: bytes | MasterKeys) -> Verified:
        """Checks every byte of a store, and recomputes derived values: statistics, indexes, counts,
        the checkpoint.

        Other processes may go on using the store; this process must not have it open. The store is
        not changed. Raises `StoreMissing`.
        """
    def save(
        self,
        plane: str,
        master_key: bytes | MasterKeys,
        backup: str,
        number: int,
        before: list[tuple[str, int, bytes]],
    ) -> Saved | None:
        """Saves a store into the folder `backup`, as of one instant.

        Other processes may go on using the store; this process must not have it open. New files are
        named after `number`. `before` lists the files of the previous backup, which are used again
        and not changed. Returns `None` while the compactor runs: try again. Raises `StoreMissing`,
        `StoreDamaged` (also for another master key), `StoreFull`.
        """
    def bind(self, plane: str, master_key: bytes | MasterKeys) -> bool:
        """Binds a store of fleetcast 0.3.0 to its name, and its names to their ids.

        A store cannot be opened before it is bound. Returns false if the store was already bound.
        Raises `StoreMissing`, `StoreDamaged`, also for another master key, `StoreUnavailable`.
        """
    def rewrap(self, plane: str, master_key: bytes | MasterKeys) -> bool:
        """Wraps the data key of a store under the newest master key.

        Processes that have the store open keep it open. Returns false if the key was already
        wrapped so. Raises `StoreMissing`, `StoreDamaged` (also if no known key opens it),
        `StoreFull`.
        """
    def is_wrapped_by(self, plane: str, master_key: bytes) -> bool:
        """Returns true if a master key wraps the data key of a store. Raises `StoreMissing`."""
    def restore(
        self,
        plane: str,
        new_master_key: bytes | MasterKeys,
        saved_as: str,
        master_key: bytes | MasterKeys,
        backup: str,
        files: list[tuple[str, int, bytes]],
        content: bytes,
        *,
        borrow: bool = False,
    ) -> None:
        """Makes a new store from `files` of a backup, reads it back, and compares its hash with
        `content`.

        `saved_as` is the name of the saved store. `master_key` is the key of the backup,
        `new_master_key` the key of the new store. With `borrow`, segments are symbolic links into
        the backup. Raises `StoreDamaged` (also for another master key), `StoreExists`, `StoreFull`:
        then the store cannot be opened.
        """

@final
class OpenPlanes:
    """Planes that this process has open, at most one for each account. A fork must make its own.

    A plane in use is never closed to make room: a caller holds it, a call is under way, or batches
    wait for a flush.
    """

    def __new__(
        cls,
        planes: Planes,
        master_key: bytes | MasterKeys,
        *,
        open_max: int,
        idle_seconds: float,
    ) -> Self:
        """Keeps at most `open_max` of `planes` open: the planes used last.

        Raises `ValueError` for a key that is not 32 bytes long, and for an invalid time.
        """
    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """Returns the open store of the account, whose tenant has the slug `tenant_key`.

        In a directory every call looks at the store's files. Missing files are reported, and
        replaced files are opened again. A damaged store is not opened again until its files change,
        or for 10 seconds in a database. Raises `StoreError`.
        """
    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes an account's store, if it still is `plane`.

        Raises the `StoreError` of the flush that precedes the close. The store is closed in any
        case.
        """
    def close_unused(self, accounts: Callable[[], set[str] | None] | None) -> list[str]:
        """Closes stores that were idle for the idle time, stores beyond `open_max`, and deleted
        stores.

        A store is deleted if its key file is gone, or if it is in a database and `accounts` does
        not return its account. `accounts` returns `None` if the accounts are unknown. Returns the
        faults of flushes before stores were closed here or in `plane`.
        """
    def waiting(self) -> dict[str, tuple[Plane, int]]:
        """Returns the stores with batches that wait for a flush, and their sealed bytes."""
    def flush(self, account_id: str, plane: Plane) -> None:
        """Calls `Plane.flush`. Releases a store that fails, unless a later flush may succeed.

        Raises `StoreError`.
        """
    def close(self) -> list[str]:
        """Flushes and closes all stores. Returns faults as `close_unused` does."""

@final
class Plane:
    """The sealed store of one tenant. Safe to share between threads.

    A time is a `datetime`, nanoseconds since 1970, or ISO 8601 text; without a zone it is UTC.
    Other types raise `TypeError`, times outside the years 1678 to 2261 raise `ValueError`.

    Example: `Plane.in_memory("acme")`, or `Engine("my-planes", key).plane("acme", "acme")`.
    """

    @staticmethod
    def in_memory(tenant_key: str) -> Plane:
        """A store in the memory of this process, which ends with the process: the oracle of the
        tests.
        """
    def write_json(
        self,
        body: bytes | Piece,
        *,
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: Time | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """Writes one batch, a JSON array of records. On return the batch is durable.

        `encode_records` makes such a body from dicts.

        The batch is atomic: it is stored as a whole, without the records that are rejected one by
        one, or not at all. Raises `Refused` (`TenantFull` for the bounds of the store),
        `StoreError`.

        With `buffer_bytes_max` the batch is not yet durable on return. It waits for the next
        `flush`, together with at most that many sealed bytes of other batches. If there is no room
        it is refused (`ingest_buffer_full`).

        `tags_max` and `fields_max` bound a record. `tenant_fields_max`, `tenant_series_max` and
        `tenant_names_bytes_max` bound the whole store. A batch beyond these bounds is refused
        (`invalid_input`, `field`: `tags` or `fields`).

        `cursor` is the key of an import (16 bytes) and its position (at most 64 bytes). The
        position is stored with the batch, or not at all. `now_ns` replaces the clock.
        """
    def write_protobuf(
        self,
        body: bytes,
        *,
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: Time | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """Writes like `write_json`, from a serialized `fleet.telemetry.v1.WriteRequest`.

        A refusal of the contract is `invalid_input` (`field`: `payload`, `entity_id`, `tags`,
        `fields`, `measurement`, `time`), `batch_too_large` or `field_type_conflict`.
        """
    def write_lines(
        self,
        body: bytes,
        *,
        precision: Precision = "ns",
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: Time | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """Writes like `write_json`, from lines in InfluxDB's line protocol with times in units of
        `precision`.

        A line without a time gets the ingest instant, rounded down to a whole unit. Integers (`1i`,
        `1u`) are stored as numbers, like every other number. Indices count the lines that hold a
        record, without empty lines and comments. In addition to the faults of JSON there are
        `line_invalid`, `int_parsing` and `int_parsing_size`, the last also for a `u` of more than
        63 bits. Raises `ValueError` for an unknown precision.
        """
    def write_text(
        self,
        body: bytes,
        form: TextFormat,
        *,
        end: int | None = None,
        cursor: tuple[bytes, int | bytes] | None = None,
        now_ns: Time | None = None,
        **bounds: Unpack[RecordBounds],
    ) -> WriteResult:
        """Writes the records of a text, or of its bytes before `end`, like `write_json` writes an
        array.

        If the position in `cursor` is a number, the number of the text's lines is added to it. The
        sum is stored as 8 bytes, the lowest first. Indices count records as `TextFormat.records`
        does.
        """
    def write_arrow(
        self,
        stream: object,
        *,
        mapping: Mapping[str, object] | None = None,
        cursor: bytes | None = None,
        first_row: int = 0,
        now_ns: Time | None = None,
        **bounds: Unpack[RecordBounds],
    ) -> list[WriteResult]:
        """Writes rows of any object with `__arrow_c_stream__`, such as a frame of polars. Returns
        the result of each piece.

        Each piece has at most 65,536 rows of one batch of the stream. It is stored as `write_json`
        stores a batch of the same records: by the same rules, whole or not at all, and durable when
        its result is returned. A null is a field or tag that the row does not have. Faults and
        `rejected_indices` count rows from `first_row`. `cursor` is the key of an import (16 bytes).
        The index of the row after a piece, 8 bytes with the lowest first, is stored with the piece.

        Without `mapping` the stream has the columns of a `scan`. Else `mapping` has `time` (a
        column of timestamps, dates, ISO 8601 texts, or integers with `time_unit`: `s`, `ms`, `us`
        or `ns`), `measurement` (a name, or `{"column": COLUMN}`), and optionally `entity` (a
        column), `tags` (`{TAG: COLUMN}`, texts or integers), `fixed_tags` (`{TAG: VALUE}`) and
        `fields` (`{FIELD: COLUMN}`; else all other columns under their names). Fields are integers,
        floating point numbers, booleans and texts, also from dictionaries.

        Raises `ValueError` for columns that do not fit and for a stream that fails, `Refused` and
        `StoreError` as `write_json` does. Earlier pieces then stay stored.

        Example: `plane.write_arrow(frame, mapping={"time": "t", "measurement": "link"})`.
        """
    def write_arrow_pieces(
        self,
        stream: object,
        *,
        mapping: Mapping[str, object] | None = None,
        cursor: bytes | None = None,
        first_row: int = 0,
        now_ns: Time | None = None,
        **bounds: Unpack[RecordBounds],
    ) -> ArrowWrites:
        """Writes like `write_arrow`, each piece when the caller asks for its result.

        The call itself writes nothing. The iterator raises the errors of a piece.
        """
    def latest_json(
        self,
        *,
        as_of_ns: Time | None = None,
        freshness_ns: int = 300_000_000_000,
        measurement: str | None = None,
        now_ns: Time | None = None,
    ) -> bytes:
        """Returns the answer of `GET /topology`: the newest sample of each (measurement, entity) in
        `[as_of - freshness, as_of)`. Raises `Refused`, `StoreError`.

        Example: with a freshness of 5 minutes, an entity whose last sample is 5 minutes old is
        included, and an entity whose last sample is older is not.
        """
    def latest_page(
        self,
        *,
        columns: Sequence[Sequence[str]] | None = None,
        measurement: str | None = None,
        search: str = "",
        entity_id: str | None = None,
        tag: tuple[str, str] | None = None,
        after_ns: int = ...,
        before_ns: int = ...,
        field: tuple[str, float, float] | None = None,
        sort: EntitySort = "id",
        sort_field: str = "",
        descending: bool = False,
        first: int = 0,
        entities_max: int = 200,
        bytes_max: int = 4_194_304,
        now_ns: Time | None = None,
    ) -> bytes:
        """Returns a page of the entities that have a sample, of any age and any measurement, as
        JSON.

        `entities` have the form of `latest_json`. The page starts at index `first` and has at most
        `entities_max` entities. It ends after the entity that passes `bytes_max` bytes. `total` is
        the number of entities whose id holds `search` (ASCII letters of either case), and equals
        `entity_id` if that is given; whose newest sample has the `tag`, lies in `[after_ns,
        before_ns)`, and has a number in `field` within its two bounds. `measurements` has the
        number of all entities of each measurement.

        Entities are sorted by measurement and id, by the `time` of their newest sample, or by the
        number in the field `sort_field`; entities without that number come last. With `columns`,
        the page has `points` in place of `entities` and `measurements`: `[measurement, id, seconds
        since 1970, number, …]`, a number or null for each column, the first among the fields that
        the column names. Takes 24 bytes of memory for each entity of `total`. Raises `StoreError`,
        and `ValueError` for an unknown `sort`.
        """
    def series_json(
        self,
        *,
        entity_ids: Sequence[str],
        start_ns: Time,
        end_ns: Time | None = None,
        measurement: str = "telemetry",
        fields: Sequence[str] | None = None,
        interval: Interval | None = None,
        agg: Aggregation | None = None,
        point_budget: int = ...,
        answer_values_max: int = ...,
        history_horizon_days: int = ...,
        raw_span_seconds: int = ...,
        any_measurement: bool = False,
        now_ns: Time | None = None,
    ) -> bytes:
        """Returns the answer of `GET /topology/series`.

        If `fields` is `None` or empty, the answer has all numeric fields. With `any_measurement` a
        caller may read measurements that the contract does not name.

        The answer holds at most `point_budget` rows and `answer_values_max` values, times and nulls
        included. A longer answer is cut at one time for all entities, `next_start`. The first time
        is always answered. Memory follows the values read, never rows times channels. Raises
        `Refused`, `StoreError`.
        """
    def latest_frame(
        self,
        measurement: str,
        *,
        entity_ids: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        as_of_ns: Time | None = None,
        freshness_ns: int = 300_000_000_000,
        now_ns: Time | None = None,
    ) -> ArrowStream:
        """Reads like `latest_json`, for any measurement, with one row per entity.

        Columns: `entity_id`, `observed_at` (timestamp[ns, UTC]), `tags` (JSON object in a string),
        then a column per field that a row has. `entity_ids` and `fields` restrict rows and columns;
        `fields=[]` leaves the tags. Raises `StoreError`, and `ValueError` for a frame of more than
        four million cells, nearly all of them empty.
        """
    def series_frame(
        self,
        *,
        entity_ids: Sequence[str],
        start_ns: Time,
        end_ns: Time | None = None,
        measurement: str = "telemetry",
        fields: Sequence[str] | None = None,
        interval: Interval | None = None,
        agg: Aggregation | None = None,
        now_ns: Time | None = None,
    ) -> ArrowStream:
        """Rows of several entities, one entity below the other, for any measurement and span,
        without a point budget.

        Columns: `entity_id`, `time` (timestamp[ns, UTC]), then a double column per channel. Raises
        `StoreError`, and `ValueError` for a frame of more than four million cells, nearly all of
        them empty.
        """
    def series_arrays(
        self,
        *,
        entity_ids: Sequence[str],
        start_ns: Time,
        end_ns: Time | None = None,
        measurement: str = "telemetry",
        fields: Sequence[str] | None = None,
        interval: Interval | None = None,
        agg: Aggregation | None = None,
        now_ns: Time | None = None,
    ) -> tuple[list[int], bytes, dict[str, bytes]]:
        """The rows of `series_frame` as bytes of arrays, which cost a third of a frame.

        Returns the number of rows of each entity, the time of each row (8-byte integers,
        nanoseconds since 1970), and for each channel a number for each row (8-byte floating point
        numbers, NaN for no value). The lowest byte comes first. Raises as `series_frame`.

        Example: `numpy.frombuffer(times, "<i8")`.
        """
    def hours_frame(
        self,
        measurement: str,
        entity_id: str,
        start_ns: Time,
        end_ns: Time,
        *,
        now_ns: Time | None = None,
    ) -> ArrowStream:
        """The hours of an entity that begin before `end_ns`, by time and field: those of
        `series_frame` with `interval="1h"`.

        Columns: `time` (timestamp[ns, UTC]), `field`, then the doubles `count`, `sum`, `min`, `max`
        and `last`, and `last_time` (timestamp[ns, UTC]). A sum that no double can hold is null.
        Raises `StoreError`.
        """
    def entity_ids(self, measurement: str) -> list[str]:
        """Returns the entities of a measurement that were ever written, sorted by their bytes.
        Raises `StoreError`.
        """
    def scan(
        self,
        start_ns: Time,
        end_ns: Time,
        *,
        measurements: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        tags: Mapping[str, str | Sequence[str]] | None = None,
        every_row: bool = False,
        now_ns: Time | None = None,
    ) -> RowStream:
        """All rows with `start_ns <= time < end_ns`, including rows without `entity_id`, batch by
        batch.

        Columns: `time` (timestamp[ns, UTC]), `measurement` (dictionary of utf8), `tags` (map of
        utf8_view to utf8_view, by key). Then follows, by name, a nullable column for each field
        that occurs next to the rows: float64, bool or utf8. A column has the name of its field. The
        suffix `:float`, `:bool` or `:text` is added if the field has two types, has the name of
        another column, or ends in such a suffix itself. Example: a field `state` with numbers and
        texts gives `state:float` and `state:text`.

        Rows are sorted by day, then by measurement, entity and time. Rows of one entity and instant
        keep the order of their writes. `fields` leaves out rows that have none of these fields,
        unless `every_row` is true. `tags` leaves out rows without one of the values of each key.
        `now_ns` replaces the clock, which decides what retention hides.

        All batches belong to one snapshot, taken by this call. If the rows are taken again, they
        are read again, from a later snapshot. Each batch has at most 65,536 rows
        and about 8 MiB. The store stays open as long as the stream lives, and segments that
        compaction replaces stay on disk. Raises `StoreError`; the library that reads a later batch
        raises its error.
        """
    def answers_hash(self) -> int:
        """Returns a hash (64 bits) over everything that `scan` answers, including rows that
        retention hides.

        Stores with the same rows have the same hash, however they are compacted (`docs/format.md`,
        "Hash of answers"). If the store has more fields than a scan may have, the hash holds only
        if no batch is written during the call. Raises `StoreError`.
        """
    def fields(self, measurement: str | None = None) -> list[tuple[str, FieldKind]]:
        """Returns name and type of every field that was ever written, of one measurement or of all.

        Names may come twice, with two types. Looks at names only. Raises `StoreError`.

        Example: `[("snr_db", "float"), ("up", "bool")]`.
        """
    def describe(
        self, measurement: str | None = None, entity: str | None = None
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Describes the contents, from names, indexes of segments and heads of the log, of one
        measurement or all, of one entity or all rows.

        Returns `{"measurements": {NAME: CONTENTS}}`. CONTENTS are `rows`, `first_ns`
        and `last_ns` (`None` without rows), `series` (tag sets) and `fields` (`float`, `bool` or
        `text` by name). `entities` is `{"count", "first"}` with the first 100 ids in order. `tags`
        has the same for the values of each key except `entity_id`.

        Rows count until compaction removes them, even if a deletion or retention hides them; names
        stay. Raises `StoreError`.
        """
    def ingest_lead_ns(self, *, now_ns: Time | None = None) -> int:
        """Returns the nanoseconds by which the last followed ingest instant lies ahead of `now_ns`;
        0 up to the 5 seconds that reads accept.
        """
    def newest_ingest_ns(self) -> int | None:
        """Returns the newest instant of a write, as of the last `follow`; `None` if there was no
        write.

        A write more than a day after all earlier writes does not count: the clock may have jumped.
        """
    def ping(self) -> None:
        """Reads the store's head. Raises `StoreError`."""
    def follow(self) -> None:
        """Applies commits of other processes, so that the next read need not."""
    def knows_any(self, measurements: Sequence[str]) -> bool:
        """Returns true if any process ever wrote a row of these measurements, even if a deletion or
        retention has hidden it. Raises `StoreError`.
        """
    def stats(self) -> Stats:
        """Counts the contents of the store and its bytes on disk. Raises `StoreError`."""
    def rekey(self) -> bool:
        """Gives the store a new data key, which seals all new bytes of every process at once.

        Compaction seals the older bytes anew, and drops the old key when no bytes are left under
        it. A further call before that makes no third key. Returns false while another process
        compacts. Raises `StoreError`, and `ValueError` if the data key of this store cannot change.
        """
    def old_key_bytes(self) -> int | None:
        """Returns the bytes of segments and log that are still under an old data key.

        `None` if there is no old key. Raises `StoreError`.
        """
    def seal(self, plain: bytes) -> bytes:
        """Seals bytes under the plane's data key. They are unreadable once the key is destroyed."""
    def unseal(self, sealed: bytes) -> bytes | None:
        """Bytes that `seal` sealed. `None` if the data key of that time was dropped.

        Raises `StoreDamaged` for anything else.
        """
    def name_hash(self, name: bytes) -> bytes:
        """Returns a keyed hash (16 bytes) of a name, as the key of a lookup if the name must not be
        stored.
        """
    def cursor(self, key: bytes) -> bytes | None:
        """Returns the position of the last batch of the import with this key. Returns `None` if the
        import is unknown, or if 16 other imports have displaced it. Raises `StoreError`.
        """
    def forget_cursor(self, key: bytes) -> None:
        """Forgets an import that has ended. Raises `StoreError`."""
    def trial(self) -> Plane:
        """Returns a plane in memory that has the names of this plane and keeps no row. It accepts,
        refuses and rejects the same batches as this plane. Raises `StoreError`.
        """
    def flush(self) -> None:
        """Makes batches durable that were written with `buffer_bytes_max`.

        Raises `StoreFull`, after which all batches still wait. Raises `StoreUnavailable` if waiting
        records may not have been stored; the message says how many.
        """
    def compact(
        self,
        *,
        whole: bool = False,
        after_seconds: int = 3600,
        now_ns: Time | None = None,
        trust_clock: bool | None = None,
    ) -> Compacted | None:
        """Does the work that is due: compacts the log if it is large or its oldest block is
        `after_seconds` old, merges segments, removes segments that retention hides. `whole`
        compacts the log in any state.

        Returns `None` if another process compacts. Raises `StoreError`; the store is then
        unchanged.

        If the clock is not trusted and is more than a day ahead of the newest ingest instant, no
        row is removed. `trust_clock` defaults to true with `now_ns`, else to `is_clock_believed()`.
        """
    def upcoming(self, *, after_seconds: int = 3600, now_ns: Time | None = None) -> Upcoming:
        """Returns the work left and its due time, so that callers need not poll. Raises
        `StoreError`.
        """
    def delete(
        self,
        start_ns: Time,
        end_ns: Time,
        *,
        measurements: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> Deleted | None:
        """Hides the committed rows with `start_ns <= time < end_ns`, of some measurements and
        entities or of all, at once from the reads of every process.

        `compact` removes the rows from disk. Rows written later are not hidden. `dry_run` only
        counts the rows. Rows that retention hides count until they are removed. Returns `None` if
        another process compacts.

        Raises `ValueError` for a start that is not before the end, an empty list, names of more
        than 64 KiB, a range that cuts a kept hour, and if 128 deletes wait for `compact`;
        `StoreError`. Then no row is hidden.
        """
    def set_retention(self, seconds: int | None) -> None:
        """Sets how long rows are kept, `None` for ever. Older rows vanish at once from the reads of
        every process, and from disk with a later `compact`.

        Raises `ValueError` for less than a second, `StoreError`. Example: 604,800 keeps a week.
        """
    def keep_hours(self, seconds: int | None) -> bool:
        """Sets how long the hours of expired rows are kept. `None` removes them.

        Windows of an hour are answered from these hours, with the same values as from their rows.
        An hour that the request cuts is left out. Returns false if another process compacts: then
        nothing has changed.

        Raises `ValueError` for less than a second, `StoreError`. Example: with a retention of 30
        days, `plane.keep_hours(5 * 365 * 86_400)` keeps hourly values for five years.
        """
    def kept_hours(self) -> KeptHours:
        """Returns counts of the hours that outlive their rows. Raises `StoreError`.

        Example: after a day of one entity has expired, `hours` is 24.
        """
    def close(self) -> None:
        """Ends the use of this store. Batches that wait for `flush` are stored if possible.

        Later calls raise `StoreUnavailable`, and so do calls under way, at their next block. The
        last of these calls releases files, descriptors and rows in memory, and overwrites the data
        key. If no call is under way, `close` itself does this before it returns.
        """

@final
class Cluster:
    """The database and the objects of an installation that many nodes share.

    The constructor does not connect: a process connects with its first use, and a fork after that
    must make its own. A build without the PostgreSQL backend raises `ValueError`. Safe to share
    between threads.
    """

    def __new__(
        cls,
        database: str,
        *,
        objects: str | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int = 10737418240,
        connections: int = 4,
        durability: Literal["quorum", "managed"] = "quorum",
    ) -> Cluster:
        """A database at `postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE` with all hosts.

        `objects` is the URL of the object store that planes need: `s3://BUCKET/PREFIX`, `gs://`,
        `az://` or `file:///DIRECTORY`. The folder `cache` keeps pieces of objects, about
        `cache_bytes` of them. `connections` is the number of connections of each process. With
        `quorum` a standby has each commit before it is acknowledged; with `managed` the provider
        ensures that. Raises `ValueError`, which does not repeat a URL.
        """
    def install(self, environment: str, master_key_check: bytes) -> bool:
        """Makes the tables and returns true, or joins the existing installation and returns false.

        Raises `ValueError` if the installation has another environment or master key, `StoreError`.
        """
    def sweep(self, *, keep_seconds: int = 86400) -> tuple[int, int, list[str]]:
        """Makes the next hours of the log. Removes hours that are over and compacted, and objects
        that no manifest has named for `keep_seconds`. Returns the numbers of removed hours and
        objects, 0 if another process sweeps, and the names of damaged planes.

        The object store lacks a segment of a damaged plane; the rows of that segment stay in the
        log. Raises `StoreError`, `ValueError` without objects.
        """
    def check(self, environment: str, master_key_checks: Sequence[bytes]) -> None:
        """Raises `ValueError` if the installation is another installation, has another version, or
        has a master key with none of these checks. Raises `StoreError` if the installation does not
        exist or the database cannot be used.
        """
    def handover(self) -> bytes | None:
        """Returns the record that hands over the master keys; `None` if no key turns.

        Raises `StoreError`.
        """
    def begin_handover(self, handover: bytes, old_check: bytes) -> bool:
        """Stores the record that hands over the master keys. Returns false if there is such a
        record, or if the installation has another master key than the key with this check.

        Raises `StoreError`.
        """
    def nodes_behind(self) -> list[str]:
        """Returns the names of the nodes that served within the last day and lack the new master
        key. Raises `StoreError`.
        """
    def settle_handover(self, node: str, new_check: bytes) -> list[str]:
        """Notes that the node with the UUID `node` has the new master key.

        Ends the turn if no node that served within the last day is left. Returns the names of the
        nodes that are left. Raises `StoreError`.
        """
    def beat(self, node: str, place: str, name: str, version: str) -> bool:
        """Records that the node with the UUID `node` serves at `place`.

        Returns false, and changes no record, if the node serves at another place, or did until ten
        seconds ago. Raises `StoreError`.
        """
    def look(self, node: str) -> tuple[int, str | None]:
        """Returns microseconds since 1970 by the database's clock, and the place at which a node
        serves.

        Raises `StoreError`.
        """
    def probe_writes(self, node: str) -> None:
        """Changes the row of the node with the UUID `node`, and undoes the change.

        Raises `StoreError` if the database takes no changes now.
        """
    def nodes(self) -> list[tuple[str, str, str, float]]:
        """Returns the nodes that served within the last day: id, name, version, seconds of silence.

        Raises `StoreError`.
        """
    def permissions(self) -> tuple[bool, bool, bool]:
        """Returns true for each right of the role: to make tables, to change and drop existing
        tables, to see the state of replication. Raises `StoreError`.
        """
    def probe_objects(self) -> bool:
        """Writes an object, reads it, looks for it in a list, and deletes it.

        Returns false if the list is refused, which only people need. Raises `StoreError`, which
        names any other operation that fails, and `ValueError` without objects.
        """
    def facts(self) -> tuple[str, str, int, int, int, tuple[int, int], bool, int] | None:
        """Version of PostgreSQL, its `synchronous_standby_names`, the number of these standbys that
        stream, bytes of the database, microseconds since 1970 by its clock, sessions of all clients
        with their bound, true if the system sorts texts as when the database was made, and the
        number of hours of the log. Raises `StoreError`.
        """
    def servers(self) -> list[tuple[str, int | None]]:
        """Each server of the settings, with the timeline of a primary, 0 for a standby, or `None`
        for a server that does not answer. Raises `StoreError`.
        """
    def plane_states(self) -> dict[str, tuple[int, int, int]]:
        """Returns three numbers for each plane, by its name. Every change of a plane's rows, names
        or segments changes one of its numbers. One statement asks for all planes.

        Raises `StoreError`.
        """
    def damaged(self) -> list[str]:
        """Names of planes with rows in the log because the object store lacks one of their
        segments. Raises `StoreError`.
        """
    def reach_objects(self) -> None:
        """Raises `StoreError` if the object store does not answer, or belongs to another
        installation, and `ValueError` without objects.
        """
    def database_now_us(self) -> int:
        """Microseconds since 1970 by the clock of the database. Raises `StoreError`."""

@final
class RecordStamp:
    """An instant by a clock that cannot be set: nanoseconds in one run of the machine.

    `boot` is the 16 bytes of the run's id.
    """

    def __new__(cls, boot: bytes, elapsed_ns: int) -> Self: ...
    def stamped(self, content: bytes) -> bytes:
        """Stamps `content` with the instant."""
    def age_ns(self, record: bytes) -> int:
        """Age of a stamped record at the instant.

        The age of a record of another run is greater than any limit.
        """
    @staticmethod
    def content(record: bytes) -> bytes:
        """Returns the content of a stamped record."""

def forecast_key(plane: Plane, account_id: str, family: str, entity_id: str) -> tuple[bytes, bytes]:
    """Returns a keyed hash of an entity, and the key of its records of forecasts.

    Raises `StoreError`.
    """

def assignment_id(rollout_id: str, digest: bytes) -> str:
    """Returns the id of a rollout's routing decision about the entity with this keyed hash.

    Raises `StoreDamaged` if the rollout's id is not a UUID.
    """

def link_features(
    links: Sequence[tuple[NDArray[int64], Sequence[NDArray[float64] | None]]],
    issued_ns: NDArray[int64],
    orbits: Sequence[tuple[NDArray[float64], NDArray[float64]] | None],
) -> tuple[bytes, bytes, bytes]:
    """Features of links at issue times, which are whole minutes.

    `links` have the times of rows, in order (nanoseconds since 1970), and the numbers of the rows:
    `snr_db`, `elevation_deg`, `azimuth_deg` and `slant_range_km`, `None` for a field that a link
    does not report. `orbits` have elevations and distances [issue times, 5] at the issue time and
    5, 15, 30 and 60 minutes later.

    Returns the columns [links, issue times, features], NaN for no value; a byte for each issue time
    of a link (0 for a forecast, 1 for insufficient telemetry, 2 for none); and the means of the
    1,440 minutes before [links, issue times, minutes]. Raises `ValueError` if arrays differ in
    length.
    """

def stored_link_features(
    plane: Plane, entity_ids: Sequence[str], issued_ns: int
) -> tuple[bytes, bytes, bytes]:
    """Features of distinct links that a plane stores, as `link_features` at one issue time.

    Raises `StoreError`.
    """

def stored_link_rows(
    plane: Plane, entity_ids: Sequence[str], first_issued_ns: int, last_issued_ns: int
) -> tuple[list[int], bytes, dict[str, bytes]]:
    """The rows that forecasts of distinct links use, issued from one instant to another.

    Returns arrays as `Plane.series_arrays`. Raises `StoreError`.
    """

@final
class ForecastFamily:
    """A family of forecasts, as answers show it."""

    def __new__(
        cls,
        name: str,
        horizons_minutes: Sequence[int],
        value_names: Sequence[str],
        window_ns: int | None,
    ) -> Self:
        """`window_ns` is the length of a pool's window; `None` for links."""

@final
class ForecastQuestion:
    """The forecasts that a request asks for."""

    family: Final[str]
    def __new__(
        cls,
        family: ForecastFamily,
        entity_ids: Sequence[str],
        horizon_minutes: int | None = None,
    ) -> Self:
        """`entity_ids` has no duplicates. `horizon_minutes` is `None` for every horizon."""

@final
class ForecastValue:
    """The newest forecast of an entity at all horizons, with its model and its lease.

    The constructor raises `ValueError` for a quantile that is not finite.
    """

    def __new__(
        cls,
        *,
        predicted_at_ns: int,
        issued_at_ns: int,
        quantiles: Mapping[int, Sequence[float]],
        tags: Mapping[str, str],
        model_version: str,
        feature_view_id: str,
        release_id: str,
        role: str,
        assignment_id: str,
        lease_id: str,
    ) -> Self:
        """`quantiles` are by horizon in minutes."""
    def seal(self, plane: Plane) -> bytes:
        """Seals the forecast under the tenant's key. Raises `StoreError`."""

@final
class OpenScores:
    """Forecasts of one batch and model at one horizon, whose truth is yet to come."""

    issued_at_ns: int
    horizon_minutes: int
    model_version: str
    role: str
    quantiles: dict[str, list[float]]
    """By entity."""

    @staticmethod
    def seal(
        plane: Plane,
        *,
        issued_at_ns: int,
        horizons_minutes: Sequence[int],
        model_version: str,
        role: str,
        quantiles: Mapping[str, Sequence[Sequence[float]]],
    ) -> list[bytes]:
        """Records by horizon: the number of forecasts, and the forecasts under the tenant's key.

        `quantiles` are [horizons, levels] by entity. Raises `StoreError`, or `ValueError` if an
        entity has another number of horizons.
        """
    @staticmethod
    def unseal(plane: Plane, record: bytes) -> OpenScores | None:
        """Opens a record; `None` if its data key was dropped. Raises `StoreError`."""
    @staticmethod
    def count(record: bytes) -> int:
        """Number of forecasts in a record."""

@final
class KeptForecasts:
    """The forecasts in a store of records. Use it after a fork only.

    `boot` is the id of this run of the machine, or `None` if another clock tells the age of
    records. The front then answers no request for forecasts.
    """

    def __new__(cls, records: Records, boot: bytes | None) -> Self: ...

@final
class RecentForecasts:
    """The kept forecasts that hold at an instant, for one question.

    They are younger than `fresh_ns`, of the rollout in force, and their targets lie in the future.
    Changes of the transaction itself do not count. The constructor raises `RecordsUnavailable`,
    `StoreError`.
    """

    def __new__(
        cls,
        records: RecordsTransaction,
        plane: Plane,
        account_id: str,
        question: ForecastQuestion,
        *,
        fresh_ns: int,
        now_ns: int,
        stamp: RecordStamp,
    ) -> Self: ...
    rollout: Final[bytes | None]
    """The record of the rollout in force."""
    values: Final[dict[str, ForecastValue]]
    """By entity."""
    missing: Final[list[str]]
    """Entities whose forecasts have to be computed; none if no model answers for the family."""
    def answer(
        self,
        captured_at_ns: int,
        values: Mapping[str, ForecastValue],
        errors: Mapping[str, tuple[str, str]],
    ) -> bytes:
        """Returns the body of the answer.

        `values` are new forecasts, and `errors` codes and messages, both by entity.
        """

@final
class Records:
    """A store of small records under keys, in named spaces.

    Keys and values are bytes. Keys have 1 to 511 bytes, and are in the order of their bytes.

    Safe between threads. Make it before a fork if you like, but use it only after.
    """

    @staticmethod
    def in_folder(
        folder: str | os.PathLike[str],
        name: str,
        spaces: Sequence[str],
        master_key: bytes | MasterKeys,
        *,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> Records:
        """An LMDB environment, opened with the first use. Its format record has the `name`.

        Records are sealed for this name, their space and their key. `counted` is spaces and a file.
        The file keeps the number of changes of these spaces. The first use of such a store looks at
        all records and compares the number, so an older copy of the store is refused.

        If its files are damaged or missing, a use raises `RecordsUnavailable`, and the next use
        opens them again. Raises `ValueError` for a master key that is not 32 bytes long.
        """
    @staticmethod
    def create(
        folder: str | os.PathLike[str],
        name: str,
        spaces: Sequence[str],
        master_key: bytes | MasterKeys,
        *,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> None:
        """Makes `folder`, of mode 0700, and in it an environment without records.

        Raises `RecordsUnavailable`, also if there is such a folder.
        """
    @staticmethod
    def in_cluster(
        cluster: Cluster, name: str, spaces: Sequence[str], master_key: bytes | MasterKeys
    ) -> Records:
        """The store `name` in PostgreSQL, which is asked with each use."""
    @staticmethod
    def replica(
        cluster: Cluster,
        name: str,
        spaces: Sequence[str],
        master_key: bytes | MasterKeys,
        *,
        follow: bool,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> Records:
        """The store `name` of PostgreSQL, copied to the memory of this process.

        With `follow` a thread asks twice a second for changes, from the first use on. Without
        `follow` each transaction asks.
        """
    def is_of_master_key(self) -> bool:
        """Returns true if the store is sealed under a known master key.

        Raises `RecordsUnavailable`.
        """
    def secret(self, label: str) -> bytes:
        """Returns 32 secret bytes for one purpose, which stay when the master key turns.

        Before the first turn the secret is derived from the master key and `label`. Raises
        `RecordsUnavailable`.
        """
    def keep_secret(self, label: str, secret: bytes) -> None:
        """Keeps 32 bytes as the secret with this label. Raises `RecordsUnavailable`."""
    def turn(self, secrets: Sequence[str]) -> bool:
        """Seals all records under the newest master key, in one transaction.

        The secrets with the labels `secrets` are kept as facts. Returns false if the records were
        already sealed so. Raises `RecordsUnavailable`; no record is changed then.
        """
    def is_sealed(self) -> bool:
        """Returns false for a store of 0.3.0, whose records are not sealed, and for an unused
        store.

        Raises `RecordsUnavailable`.
        """
    def unsealed_accounts(self) -> list[str]:
        """Accounts of a store without a seal. Raises `RecordsUnavailable`."""
    def take_over(self, facts: Sequence[bytes]) -> bool:
        """Seals the records that fleetcast 0.3.0 wrote without a seal, in one transaction.

        The facts under the keys `facts` are sealed too. Returns false if the store has a seal.
        Raises `RecordsUnavailable`, also if the file of `counted` says that the store was sealed
        before.
        """
    def check(self) -> None:
        """Checks all records: each must be the last that was written in its place.

        Raises `RecordsUnavailable`, which names the fault.
        """
    place: Final[str]
    """The folder, or "PostgreSQL"."""
    def begin(self, *, write: bool) -> RecordsTransaction:
        """Begins a transaction for a `with` block.

        With `write` no other transaction of the store writes until its end, in any process. In
        PostgreSQL the transaction ends after 10 idle seconds. A block must not begin another
        transaction of the store. Raises `RecordsUnavailable`.
        """
    def renew(self) -> bool:
        """Looks for changes that no transaction has seen. Returns true if there may be some.

        Raises `RecordsUnavailable`.
        """
    def close(self) -> None:
        """Releases open files and connections; the next use opens them again."""

@final
class RecordsTransaction:
    """The records as of the beginning of the transaction, with its own changes.

    The end of the block makes all changes durable, or none; if the block raises, none. Each method
    raises `RecordsUnavailable`. If the end of the block raises it and says so, the change may be
    stored.
    """

    version: int
    """Number of the last foreign change that this transaction sees; each change has a higher
    number.
    """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commits, unless the block raised or the transaction only reads."""
    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""
    def load(self, space: str, keys: Sequence[bytes]) -> None:
        """Reads the values of many keys at once; later calls of `get` return them."""
    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces a record. Raises `ValueError` if the transaction only reads."""
    def delete(self, space: str, key: bytes) -> None:
        """Deletes a record if it exists. Raises `ValueError` if the transaction only reads."""
    def under(
        self, space: str, prefix: bytes, first: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with `prefix`, with their values, ascending from `first`."""
    def count(self, space: str) -> int:
        """Number of records of a space."""

@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Record:
    """A record of accounts, made from its members as keywords. Times are whole seconds since 1970.

    Records are equal if all members are equal. A `hash` is the keyed hash of a secret, in
    hexadecimal.
    """

    SPACE: Final[str]
    """The space of these records."""

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - as of the members
        """Returns the record with other values of these members. Raises `TypeError`."""
    def encode(self) -> bytes:
        """The bytes of the record, JSON."""
    @classmethod
    def get(cls, view: RecordsTransaction, key: str) -> Self | None:
        """Returns the record of a key; `None` if there is none, or if the text cannot be a key.

        Raises `RecordsUnavailable`.
        """
    @classmethod
    def all(cls, view: RecordsTransaction, prefix: str = "") -> dict[str, Self]:
        """All records by their keys, ascending. Raises `RecordsUnavailable`."""
    def put(self, view: RecordsTransaction) -> None:
        """Adds or replaces the record under its name or id.

        Raises `RecordsUnavailable`, and `ValueError` if the transaction only reads.
        """
    @classmethod
    def delete(cls, view: RecordsTransaction, key: str) -> None:
        """Deletes the record of a key if it exists. Raises as `put`."""

@final
class Tenant(_Record):
    """A customer: `name` is its slug and its `tenant_key`, `account_id` names its data plane."""

    name: str
    account_id: str
    plan: str
    live_ingest: bool
    retention_seconds: int | None
    disabled: bool
    created_at: int

    @property
    def status(self) -> Literal["active", "disabled"]: ...

@final
class ApiKey(_Record):
    """A key. `replaced_by` is the id of the key that it was last rotated to."""

    key_id: str
    tenant: str
    name: str
    scopes: list[str]
    environment: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    hash: str
    replaced_by: str | None = None

    def ended(self, now: int) -> Literal["revoked", "expired"] | None:
        """The way in which it has ended."""

@final
class OperatorToken(_Record):
    """A token that opens the console."""

    token_id: str
    name: str
    created_at: int
    expires_at: int
    revoked_at: int | None
    hash: str

    def ended(self, now: int) -> Literal["revoked", "expired"] | None:
        """The way in which it has ended."""

@final
class ConsoleSession(_Record):
    """A session at the console."""

    session_id: str
    token_id: str
    address: str
    opened_at: int
    used_at: int
    expires_at: int
    hash: str

    def ended(self, now: int) -> bool:
        """Returns true if the session has expired, has been idle for half an hour, or was last used
        more than a minute in the future, under a wrong clock.
        """

@final
class UsageRecord(_Record):
    """Requests of an account, `counted` of them in the run named `run`.

    Its key is the account, or the account, a slash and a node.
    """

    requests: int
    run: str
    counted: int

    def put(self, view: RecordsTransaction, key: str) -> None:  # type: ignore[override] # takes its key
        """Adds or replaces it under this key."""

@final
class Identity:
    """The tenant and the key of a request."""

    tenant: Tenant
    key: ApiKey

@final
class SecretText:
    """The text of a `key`, of an operator's `token` or of a console `session`: an id and a secret.

    `str` returns the text.
    """

    id: str
    """Id of the record."""

    def __new__(cls, kind: Literal["key", "token", "session"], environment: str = "") -> Self:
        """Makes a new id and a new secret. `environment` is the environment of a key.

        Raises `ValueError` for an invalid environment, `StoreError` without random bytes.
        """
    @classmethod
    def read(cls, kind: Literal["key", "token", "session"], text: str) -> Self | None:
        """A text of this kind, `None` if it is none."""
    def hash(self, pepper: bytes) -> str:
        """HMAC-SHA-256 of the secret under `pepper`, in hexadecimal."""
    def proves(self, pepper: bytes, kept: str | None) -> bool:
        """Returns true if `kept` is the hash of this secret. `None` takes the same time: a hash and
        a comparison.
        """
