"""The compiled engine (`rust/py`). Only `fleetcast.engine` and `fleetcast.errors` import it.

Times are nanoseconds since 1970-01-01T00:00:00Z as `int`. Every call that touches a store leaves
the GIL. A store must not be used in a child after a fork: open it there.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from fleetcast.grpc.front import FrontOptions, WriteRules
from fleetcast.http.rules import ListenerRules
from fleetcast.http.server.limits import ConnectionLimits
from fleetcast.metrics.surfaces import Books

Interval: TypeAlias = Literal["15s", "30s", "1m", "5m", "15m", "1h"]
Aggregation: TypeAlias = Literal["mean", "min", "max", "last"]
Precision: TypeAlias = Literal["ns", "us", "ms", "s"]
FieldKind: TypeAlias = Literal["float", "bool", "text"]

MEASUREMENTS: Final[tuple[str, ...]]
"""The six measurement names that the topology filter and the series read accept."""
INTERVALS: Final[tuple[str, ...]]
"""Aggregation windows, ascending."""
AGGREGATIONS: Final[tuple[str, ...]]

BATCH_RECORDS_MAX: Final[int]
"""Records of one batch over HTTP. This limit and those below are the defaults of the calls of a
plane and of the service's settings; `rust/core/src/model/limits.rs` says what each protects.
"""
CALL_RECORDS_MAX: Final[int]
"""Records of one gRPC call."""
TAGS_MAX: Final[int]
"""Tags of one record, less those that the service stamps."""
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
"""Days that a series read reaches back: the default of `history_horizon_days`."""
RAW_SPAN_SECONDS_MAX: Final[int]
"""Seconds that a raw series read spans: the default of `raw_span_seconds`."""

class Refused(Exception):
    """A request the contract refuses. `args` is `(code, context)`.

    Codes and their context: `schema_faults` (`detail`: list of `{"type", "loc", "msg"}`),
    `batch_too_large` (`max`, `received`), `invalid_input` (`field`), `field_type_conflict`
    (`field`), `unknown_measurement` (`allowed`), `agg_requires_interval`, `invalid_range`,
    `history_horizon_exceeded` (`horizon_days`), `interval_required` (`min_interval`),
    `interval_too_fine` (`min_interval`).
    """

    args: tuple[str, dict[str, object]]

class InvalidKey(Refused):
    """`auth_failed` for a key that was sent and is no good: the kind that the lockout counts."""

class TenantFull(Refused):
    """A batch with names that are new to the store and would take it past a bound on them:
    `invalid_input` (`field`: `tags` for the series or the bytes of all names, `fields` for the
    fields of the store).

    Names that exist can be written on.
    """

    bound: str
    """Name of the bound, as `Plane.write_json` takes it."""

class StoreError(Exception):
    """A fault of the machine or the files; the message says which and what to do.

    As none of its kinds below it is an internal fault, a bug that ended one call: the store is to
    be closed and opened anew.
    """

class StoreMissing(StoreError):
    """There is no store where one was to be opened."""

class StoreExists(StoreError):
    """There is already a store where one was to be made."""

class StoreDamaged(StoreError):
    """Stored bytes are damaged or were written with another key."""

class StoreFull(StoreError):
    """No space is left on the device. Nothing was written; writing may be tried again."""

class StoreUnavailable(StoreError):
    """The operating system or LMDB refused an operation, or the store was closed meanwhile."""

class StoreUnreachable(StoreUnavailable):
    """The engine of the store is away, and nothing was changed; or it did not answer, and the
    change may be stored: the message says which. The handle goes on as soon as it is back.
    """

class RecordsUnavailable(StoreError):
    """Small records cannot be read or written now; the message says why."""

def is_clock_believed() -> bool:
    """True if this process has seen the wall clock go on for an hour without a step."""

def parse_time(text: str) -> int:
    """Nanoseconds of an ISO 8601 datetime, saturating at the int64 range.

    A value without offset is read as UTC. Raises `ValueError` where the text is not a datetime.
    """

def format_time(time_ns: int) -> str:
    """`2026-01-31T12:00:00Z` with 0, 3, 6 or 9 fractional digits."""

def time_ns(time: object) -> int:
    """Nanoseconds since 1970 of a `datetime`, an ISO 8601 text, or nanoseconds since 1970.

    A time without a zone is UTC. Raises `ValueError` for other text, `TypeError` for other types.
    """

def encode_json(records: list[Any], *, datetimes: bool) -> bytes | None:
    """Records as the JSON body of a write, without spaces; `datetimes` as ISO 8601 text or not.

    `None` where they hold anything but `dict` with `str` keys, `list`, `tuple`, `str`, `bool`,
    `int` of 64 bits, finite `float` and `None`: Python's own encoder knows what to do then.
    """

def encode_protobuf(records: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Each record as a field of a `WriteRequest`: requests are made by joining them.

    `measurement`, `time` as `time_ns` takes it, and optionally `tags` and `fields`, which keep
    their order. Raises `KeyError` where something is missing, `TypeError` and `ValueError` for
    values that no record can hold, `OverflowError` for an integer beyond the largest double.
    """

def note_unreadable(tenant: str, key_id: str, process: str, result: WriteResult) -> None:
    """Writes a log line about records of a batch that no read shows, one a minute at most."""

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
    """Writes one line of the access log to stderr: the members of a `log_lines.Served`."""

def routes(is_adapters: bool) -> list[tuple[str, list[str], bool, str | None, bool, list[str]]]:
    """The routes of the public listener, or of that for other protocols.

    Each has its path, all methods, true if it needs a key, the scope that it needs, true if it is a
    write, and the content codings of a body of another protocol.
    """

def key_fields(is_adapters: bool) -> list[str]:
    """Header fields that a key may stand in: the first that a request has decides."""

def is_acceptable(request: bytes, *, tags_max: int, fields_max: int) -> bool:
    """True where a tenant without a series or a field could write a `WriteRequest` of at most
    `BATCH_RECORDS_MAX` records. Records that are rejected one by one do not matter.
    """

def field_of_column(column: str) -> str:
    """Name of the field in a column of a scan."""

def column_of_field(field: str, kind: Literal["float", "bool", "text"]) -> str:
    """Name of a column of a scan for values of one type of a field.

    Raises `ValueError` for another type.
    """

@final
class WriteResult:
    def answer(self) -> bytes:
        """The body of the answer to a write over HTTP."""
    @property
    def write_id(self) -> str:
        """UUIDv7 of the write."""
    @property
    def accepted_count(self) -> int: ...
    @property
    def rejected_indices(self) -> list[int]:
        """Ascending, zero-based; empty where nothing was rejected."""
    @property
    def dropped(self) -> list[tuple[int, str, str, str]]:
        """The first hundred rejected records of another protocol: number of the line or value, from
        1, code, place in it such as `fields.x`, and a sentence.
        """
    @property
    def line_count(self) -> int:
        """Lines of a text that was written; 0 for a body without lines."""
    @property
    def clamped_count(self) -> int:
        """Accepted records whose time lay in the future and became the ingest instant."""
    @property
    def no_entity_count(self) -> int:
        """Accepted records without `entity_id`, which no read but a scan shows."""
    @property
    def other_measurement_count(self) -> int:
        """Other accepted records, of a measurement that the service does not serve."""
    @property
    def commit_seconds(self) -> float:
        """How long it took to make the batch durable, waiting for others' commits included."""

class _RecordBounds(TypedDict, total=False):
    """Bounds on a record and on all that a store has, see `Plane.write_json`."""

    tags_max: int
    fields_max: int
    tenant_fields_max: int
    tenant_series_max: int
    tenant_names_bytes_max: int

class _BatchBounds(_RecordBounds, total=False):
    """The same, on a batch and on what waits with it."""

    batch_records_max: int
    buffer_bytes_max: int | None

@final
class NameMapping:
    """Names of other protocols as they are stored.

    `rules` are by the name of the source, a measurement or a metric: the measurement under which it
    is stored (`None` for the same name), text before the names of its fields, and the tag that is
    stored as `entity_id` where there is none (`None` for no tag). `others` is that of all others.
    """

    def __new__(
        cls,
        rules: Sequence[tuple[str, tuple[str | None, str, str | None]]],
        others: tuple[str | None, str, str | None],
    ) -> Self: ...

@final
class TextFormat:
    """A format whose records stand in lines of a text."""

    @staticmethod
    def json() -> TextFormat:
        """A JSON object on each line, as an element of the array of `Plane.write_json`. One that is
        none is `json_invalid` or `model_attributes_type` at the index of its record.
        """
    @staticmethod
    def lines(precision: Precision) -> TextFormat:
        """Line protocol as in `Plane.write_lines`. Raises `ValueError`."""
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
        """Comma-separated values (RFC 4180) without their header. A column has the names of its
        tags and the name and type of its field; one whose type is not given gets that of its first
        cell with a text.

        An empty cell is no value, and so is `nan` among numbers; `""` is an empty text. A row with
        too few cells or too many is `model_attributes_type`, one that is not UTF-8 or whose quotes
        are wrong `line_invalid`; a cell of another type than its column is located by `cell` and
        its index. Raises `ValueError` for indices of no column, an unknown type or unit.
        """
    @staticmethod
    def cells(row: str) -> list[str] | None:
        """The cells of a row of CSV, `None` where its quotes are wrong."""
    def kinds(self) -> list[FieldKind | None]:
        """The types of the columns of CSV, as far as they are known."""
    def records(
        self, body: bytes, end: int | None = None
    ) -> tuple[list[tuple[int, int, int]], int | None]:
        """Start and end of each record and the number of its line, from 0; and the start of the
        first that has an open quote, `None` without one: it may go on in what follows the text.
        """

@final
class Stats:
    @property
    def rows(self) -> int:
        """Records stored."""
    @property
    def values(self) -> int:
        """Field values stored."""
    @property
    def batches(self) -> int:
        """Accepted batches with at least one stored record."""
    @property
    def rejected(self) -> int:
        """Records rejected per record since the store was made."""
    @property
    def series(self) -> int:
        """Distinct (measurement, tag set)."""
    @property
    def log_bytes(self) -> int:
        """Bytes of the sealed blocks in the log."""
    @property
    def stored_rows(self) -> int:
        """Records stored now: those that retention removed from disk are not among them."""
    @property
    def stored_values(self) -> int:
        """Field values stored now."""
    @property
    def segments(self) -> int:
        """Segments that the log was compacted into."""
    @property
    def generation(self) -> int:
        """Times that the list of segments was replaced, by compactions and deletes."""
    @property
    def stored_bytes(self) -> int:
        """Bytes on disk: the sum of the four below."""
    @property
    def log_file_bytes(self) -> int:
        """Bytes of the log's files, with the space that is reserved in them."""
    @property
    def segment_bytes(self) -> int:
        """Bytes of the segments."""
    @property
    def names_bytes(self) -> int:
        """Bytes that names, the list of segments and the little else in tables take."""
    @property
    def free_bytes(self) -> int:
        """Bytes that the tables' file has and does not use."""

@final
class Compacted:
    """Result of a compaction."""

    @property
    def blocks(self) -> int:
        """Blocks of the log that are in segments now."""
    @property
    def merged(self) -> int:
        """Segments that were merged into others."""
    @property
    def expired(self) -> int:
        """Segments that retention removed, or days of."""
    @property
    def held(self) -> int:
        """Segments that retention would remove, or days of, if the clock were trusted."""
    @property
    def purged(self) -> int:
        """Segments that deleted rows were removed from."""
    @property
    def bytes_written(self) -> int:
        """Bytes written into segments."""

@final
class Deleted:
    """Counts of the rows that a delete hides."""

    @property
    def rows(self) -> int: ...
    @property
    def entities(self) -> int:
        """Entities of these rows; the same id in two measurements counts twice."""
    @property
    def measurements(self) -> list[str]:
        """Measurements of these rows, ascending."""
    @property
    def first_ns(self) -> int | None:
        """Time of the first of them, nanoseconds since 1970; `None` where there is none."""
    @property
    def last_ns(self) -> int | None:
        """Time of the last of them, likewise."""

@final
class Upcoming:
    """Work left for `Plane.compact`, and its time, if nothing is written until then."""

    @property
    def retention_seconds(self) -> int | None:
        """How long rows are kept, `None` for ever."""
    @property
    def generation(self) -> int:
        """Times that the list of segments was replaced."""
    @property
    def log_bytes_due(self) -> int:
        """Bytes of the log from which on it is compacted at once."""
    @property
    def log_since_ns(self) -> int | None:
        """Ingest instant of the log's oldest block, `None` where the log is empty."""
    @property
    def due_ns(self) -> int | None:
        """When a day is to be merged, or its rows are no longer kept, or rows were deleted."""

@final
class Verified:
    """Result of a look at a whole store."""

    @property
    def blocks(self) -> int:
        """Blocks of the log."""
    @property
    def segments(self) -> int:
        """Segments, the checkpoint not counted."""
    @property
    def rows(self) -> int:
        """Records in both."""
    @property
    def values(self) -> int:
        """Field values in both."""
    @property
    def damages(self) -> list[str]:
        """A line for each damage; none where everything is sound."""

@final
class Saved:
    """A store as it was saved by `Plane.save`."""

    @property
    def files(self) -> list[tuple[str, int, bytes]]:
        """Name in the folder, length and SHA-256 of each file, those of earlier backups too."""
    @property
    def bytes_written(self) -> int:
        """Bytes of files that were written now."""
    @property
    def bytes_linked(self) -> int:
        """Bytes of segments that got a second name in the backup instead."""
    @property
    def rows(self) -> int:
        """Records in it."""
    @property
    def values(self) -> int:
        """Field values in it."""
    @property
    def content(self) -> bytes:
        """Hash (32 bytes) over everything that answers follow from."""

@final
class ArrowStream:
    """Columns of an answer. Any Arrow library takes it, e.g. `polars.DataFrame(stream)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RowStream:
    """Rows of a scan. Any Arrow library takes those that are left, e.g. `polars.DataFrame(rows)`;
    an iteration gives them batch by batch, of eight mebibytes unless a row has more.

    It keeps segments on disk until it is taken and read, or dropped.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a table. Raises `ValueError` as `check_table` does."""
    def check_table(self) -> None:
        """Raises `ValueError` if the rows have more than 4,096 fields, too many for a table."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> RowBatch:
        """Raises `StoreError`."""

@final
class RowBatch:
    """Rows of one measurement. Arrow takes all of them, which is possible once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a table. Raises `ValueError` as `RowStream.check_table` does."""
    def __len__(self) -> int:
        """Rows that are left."""
    def json_lines(self) -> bytes:
        """Takes the next rows, about a mebibyte of lines: each is a record as in `write_json`.

        Empty where no row is left.
        """

@final
class ArrowWrites:
    """Pieces of a stream; each is written when it is asked for."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> WriteResult: ...

@final
class LongAnswer:
    """An answer that is made piece by piece, as of the instant at which it was asked for.

    It holds the values that are not made yet; the front takes it instead of the pieces.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes:
        """The next piece; a `memoryview` of a long one."""
    def when_over(self, call: Callable[[int], object], /) -> None:
        """Has `call` called once, with the bytes that were made, at the end or when it is given
        up."""

@final
class Authenticator:
    """Checks keys for one environment. Safe to share between threads."""

    def __new__(cls, records: Records, pepper: bytes, environment: str) -> Self:
        """Keys and tenants are in `records`; `pepper` is the key of the hashes of secrets."""
    def identify(self, key: str | None, *, now: int) -> Identity:
        """The identity behind the text of a key, as of `now` in seconds since 1970.

        Raises `InvalidKey`, `Refused` (`auth_failed` without a key, `tenant_unknown`,
        `tenant_disabled`), `RecordsUnavailable`.
        """

@final
class Decision:
    """The decision about one request."""

    @property
    def address(self) -> str:
        """Address of the client, as far as limits care."""
    @property
    def path(self) -> str | None:
        """The path of its route, `None` if it has none."""
    @property
    def identity(self) -> Identity | None:
        """The identity, once it was found."""
    @property
    def plane(self) -> Plane | None:
        """The store of the account, once it was opened."""
    @property
    def events(self) -> list[str]:
        """Events for the audit log."""
    @property
    def key_id(self) -> str | None:
        """Id in the key that the events are about, if it has the form of one."""
    @property
    def is_over_share(self) -> bool:
        """True for a request that is one too many of its account."""
    @property
    def fault(self) -> str | None:
        """The reason that the store of the account cannot be opened, for the log."""
    def check(self) -> Literal["serve", "options", "await body"]:
        """The next step. Raises `Refused`, `RecordsUnavailable`, `StoreUnreachable`."""

@final
class LimiterFile:
    """Request rate and lockout per client, counted together by all processes that use one file.

    The file is opened with the first question, and made if it is missing or of an earlier boot.
    A limit of 0 is off. An address is an IPv4 or IPv6 address in text. `now_ns` replaces the
    clock, nanoseconds since the boot. Methods raise `StoreUnavailable` and `StoreFull` if the file
    is of no use. For a `Service` such faults let requests pass.
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

        Raises `OverflowError` for what is no 32-bit number.
        """
    def admit(self, address: str, *, now_ns: int | None = None) -> int | None:
        """Counts a request; whole seconds to wait, at least 1, if it is refused instead."""
    def lockout(self, address: str, *, now_ns: int | None = None) -> int | None:
        """Whole seconds, at least 1, that the client stays locked out; `None` if it is not."""
    def record_failure(self, address: str, *, now_ns: int | None = None) -> None:
        """Counts a failure, which may lock the client out."""

@final
class Service:
    """Decides about the requests of one listener, and makes answers of the data path."""

    def __new__(
        cls, authenticator: Authenticator, planes: OpenPlanes, rules: ListenerRules
    ) -> Self: ...
    def decide(self, environ: dict[str, Any], *, body_bytes: int = 0) -> Decision:
        """The decision about a request of WSGI, of whose body `body_bytes` have come."""
    def common_fields(
        self, request_id: str, origin: str | None, allow: str | None = None
    ) -> list[tuple[str, str]]:
        """Header fields that all answers have; `allow` is that of an answer to OPTIONS."""
    def content(
        self, body: bytes | RequestBody, content_encoding: str | None
    ) -> bytes | RequestBody:
        """The content of a body with this `Content-Encoding`, gzip or a block of snappy unpacked.

        Raises `Refused`: `request_too_large` beyond the bytes that a body may have or 1,024 members
        of gzip, `invalid_input` (`field`: `payload`) if the body is not of its coding.
        """
    def write(
        self, plane: Plane, path: str, query: str, content: bytes | RequestBody
    ) -> WriteResult:
        """Writes the content of a body for `path` as one batch.

        On the listener for other protocols a faulty record is rejected alone
        (`WriteResult.dropped`); of Prometheus and OpenTelemetry, values of one set of tags and one
        time are one record, and numbers are those of series and of data points. With
        `accept_partial=false` for lines, a faulty record refuses all with `schema_faults`, whose
        locations have those numbers from 1. Raises as `Plane.write_json`; `invalid_input` (`field`)
        for a `precision` or `accept_partial` that is not known, and for a body that is no message
        (`payload`); `ValueError` for a path without writes.
        """
    @staticmethod
    def latest(plane: Plane, query: str) -> list[bytes | memoryview] | LongAnswer:
        """The body of `GET /topology` with this query string. Raises `Refused`, `StoreError`."""
    def series(self, plane: Plane, query: str) -> list[bytes | memoryview] | LongAnswer:
        """The body of `GET /topology/series`. Raises `Refused`, `StoreError`."""

@final
class Serving:
    """Has a front decide about requests, and serve those of the data path."""

    def __new__(cls, renew: Callable[[], Service], books: Books) -> Self:
        """`renew` gives the service by the settings in force. Raises `OSError`."""

@final
class GrpcFront:
    """The sockets and calls of one gRPC process, on threads without the interpreter.

    It serves from the moment it is made, in a process that does not fork.
    """

    def __new__(
        cls,
        authenticator: Authenticator,
        planes: OpenPlanes,
        rules: Callable[[], WriteRules],
        books: Books,
        options: FrontOptions,
    ) -> Self:
        """`rules` gives those of the settings in force.

        Raises `OSError`, which names the file if a certificate cannot be used, and `ValueError` for
        a status that there is not.
        """
    def next_events(self, seconds: float, /) -> list[EndedCall | GrpcNotice]:
        """The next events; none if there are none for so long.

        A call that has ended is answered once this is called again. For one thread.
        """
    def is_alive(self, seconds: float, /) -> bool:
        """Tells if the loops do anything within so long."""
    def stop(self, seconds: float, /) -> None:
        """Takes no more calls, and waits for calls that have begun, for so long at most."""

@final
class EndedCall:
    """A call that has ended, and is not a write that was stored."""

    @property
    def request_id(self) -> str: ...
    @property
    def route(self) -> str:
        """`Service/Method`, the service by its last name."""
    @property
    def status(self) -> str:
        """The name of its status."""
    @property
    def error(self) -> str | None:
        """The error code, if it was refused."""
    @property
    def identity(self) -> tuple[str, str, str] | None:
        """Account, name of the tenant and id of the key, if the key is known."""
    @property
    def client(self) -> str:
        """Address and port, as gRPC spells them."""
    @property
    def seconds(self) -> float: ...
    @property
    def bytes_in(self) -> int: ...
    @property
    def bytes_out(self) -> int: ...
    @property
    def bad_key(self) -> str | None:
        """The text of a key that is no good, for the audit log, which tells its id alone."""
    @property
    def fault(self) -> str | None:
        """A fault of the machine, for the log."""
    @property
    def bound(self) -> str | None:
        """The setting that the names of a tenant would have passed."""
    @property
    def is_over_share(self) -> bool:
        """Its account, or its address, held its share already."""

@final
class GrpcNotice:
    """Something that happened to the listener of gRPC."""

    @property
    def event(self) -> str: ...
    @property
    def problem(self) -> str | None: ...

@final
class Front:
    """The sockets of one HTTP worker: one thread runs `turn`, and `threads_max` others wait in
    `next_request`. None of them holds the GIL there. Open it after a fork."""

    def __new__(
        cls,
        listeners: Sequence[int],
        *,
        threads: int,
        limits: ConnectionLimits,
        key_fields: list[str],
        server: tuple[str, int],
        settings: int | None = None,
        serving: Serving | None = None,
    ) -> Self:
        """A front for descriptors of listening sockets, which it has open beside the caller.

        One tenant gets `threads` of the threads. `key_fields` are the header fields that a key may
        stand in; the first that a request has says whose share it counts for. `server` are name
        and port for the application; `settings` is a descriptor of memory whose first word is the
        version of the settings in force. With `serving` it
        decides about requests, and serves those of the data path. Raises `OSError`.
        """
    @property
    def threads_max(self) -> int:
        """Threads that are to wait for requests: twice those of one tenant."""
    def watch(self, pipe: int, /) -> None:
        """Ends a turn early when a pipe that does not block has something to read, which is read
        away. Raises `OSError`."""
    def set_limits(self, limits: ConnectionLimits, /) -> None:
        """Puts limits in force for the next head of each connection."""
    def turn(self, seconds: float, /) -> list[str]:
        """Serves sockets for so long. What ends it early: the watched pipe, a signal, another
        version of the settings, and the end of the last connection after `stop_accepting`.

        Gives a message for each connection that a fault of the front has cost. Raises `OSError`.
        """
    def next_request(self, last: FrontRequest | None = None, /) -> FrontRequest | None:
        """Sends the answer to the thread's last request, and waits for its next; `None` ends the
        thread. A last request without an answer loses its connection."""
    def stop_accepting(self) -> None:
        """Takes the connections that already wait, then no more. Requests under way go on, and
        each connection ends with its answer."""
    def end_threads(self) -> None:
        """Has the threads end when no request waits any more."""
    def close(self) -> None:
        """Closes every socket, whatever it is doing."""
    def held(self) -> tuple[int, int, int, int]:
        """Open connections, requests that wait for a thread, bytes of answers that clients have
        not taken, and requests that threads have taken so far."""

@final
class FrontRequest:
    """A request in the hands of one thread. All but `malformed` raises `RuntimeError` once it has
    its answer."""

    @property
    def malformed(self) -> str | None:
        """The error code of a head that gets no further than the parser, else `None`."""
    @property
    def peer_address(self) -> str:
        """Address of the other end, without the port; empty where it has none."""
    def environ(self) -> dict[str, Any]:
        """The WSGI environment of a request whose head is whole; to be asked for once before each
        run of the application, as the body moves into it.

        `wsgi.input` and `fleetcast.body` are the body, a `RequestBody`. `fleetcast.decision` is the
        `Decision` of a front that decides, and `fleetcast.failed` what came of serving the request:
        it is to be raised, as a batch may be stored. Under another front the application decides
        (`Service.decide`). With `fleetcast.body_due` the body has not been received: an application
        that wants it answers `100 Continue`, and is asked again, with `fleetcast.admitted`, when
        all of it is there. A request that is `fleetcast.over_share` is to be refused, and so is one
        whose account, once it is known, does not get it by `fleetcast.claim`.
        `fleetcast.oversized` tells that nobody reads the body.
        """
    def claim(self, account_id: str, /) -> bool:
        """Counts the request for the account that its key is of; false where that is too much."""
    def await_body(self) -> bool:
        """Has the body received, and the request come again. Where that is beyond the share of its
        owner it is false, and the request is to be refused: it is `over_share` then."""
    def answer(
        self,
        status: str,
        fields: Sequence[tuple[str, str]],
        chunks: Sequence[bytes | memoryview] | LongAnswer,
    ) -> None:
        """The answer, sent by the next call of `next_request`. Long chunks are not copied. A
        `LongAnswer` is made as the client takes it, in chunks, or up to the end of the connection
        for HTTP/1.0.

        Raises `ValueError` for what no header can hold.
        """
    def refuse(self, whole_answer: bytes, /) -> None:
        """An answer as it is on the wire, after which the connection ends."""

@final
class RequestBody:
    """The body of a request: a file as WSGI wants it, and bytes that need no copy for a plane."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def read(self, size: int | None = None, /) -> bytes: ...
    def readline(self, size: int | None = None, /) -> bytes: ...
    def readlines(self, hint: int | None = None, /) -> list[bytes]: ...

@final
class Planes:
    """The stores of all tenants of an installation, each named by its account id.

    Every method raises `StoreUnavailable`, and `ValueError` for a key that has not 32 bytes.
    """

    @staticmethod
    def in_directory(directory: str | os.PathLike[str]) -> Planes:
        """Each in a folder of `directory`, which has its name. Neither need exist."""
    @staticmethod
    def in_cluster(cluster: Cluster) -> Planes:
        """Each in the database and the objects of `cluster`; their names are UUIDs.

        A name is never given again. Backups of these and into these are copies like any other.
        """
    def create(self, plane: str, master_key: bytes) -> None:
        """Makes an empty store with a new data key, wrapped by `master_key` (32 bytes).

        Raises `StoreExists` where there is one, or anything in its folder, and `StoreFull`.
        """
    def open(self, plane: str, master_key: bytes, tenant_key: str) -> Plane:
        """Opens the store of the tenant whose slug is `tenant_key`.

        It waits for no writer, and up to 2 seconds for calls that still end in this process after
        `close`.

        Raises `StoreMissing`, `StoreDamaged` (another master key, too).
        """
    def destroy(self, plane: str) -> None:
        """Destroys the data key of a store, then the rest of it, as far as that can be done now.

        One that is gone is no error. Raises only where the key may still be there.
        """
    def counts(self, plane: str) -> Stats:
        """Counters of a store as of the last commit of any process, read without its key, its rows,
        a lock or a sync.

        In a directory it takes microseconds and waits for nobody; any process may have the store
        open, this one too. Raises `StoreMissing`, `StoreDamaged`.
        """
    def verify(self, plane: str, master_key: bytes) -> Verified:
        """Looks at every byte of a store, and computes anew what follows from others: statistics,
        indexes, counts, the checkpoint. Other processes may go on using it; this one must not have
        it open. It changes nothing.

        Raises `StoreMissing`.
        """
    def save(
        self,
        plane: str,
        master_key: bytes,
        backup: str,
        number: int,
        before: list[tuple[str, int, bytes]],
    ) -> Saved | None:
        """Saves a store into the folder `backup`, as of one instant.

        Others may go on using the store; this process must not have it open. New files are named
        after `number`; those of `before`, the files of the backup before, are used again and not
        touched. `None` where the compactor is at work: try again. Raises `StoreMissing`,
        `StoreDamaged` (another master key, too), `StoreFull`.
        """
    def bind(self, plane: str, master_key: bytes) -> bool:
        """Binds a store of fleetcast 0.3.0 to its name, and its names to their ids.

        Until then it cannot be opened. Returns false for a store that is bound. Raises
        `StoreMissing`, `StoreDamaged`, also for another master key, `StoreUnavailable`.
        """
    def restore(
        self,
        plane: str,
        new_master_key: bytes,
        saved_as: str,
        master_key: bytes,
        backup: str,
        files: list[tuple[str, int, bytes]],
        content: bytes,
        *,
        borrow: bool = False,
    ) -> None:
        """Makes a new store of `files` of a backup.

        It is read again and its hash compared with `content`. `saved_as` is the name that it had,
        `master_key` that of the backup, `new_master_key` that of the new store. With `borrow`
        segments are symbolic links into the backup. Raises `StoreDamaged` (another master key,
        too), `StoreExists`, `StoreFull`: then the store cannot be opened.
        """

@final
class OpenPlanes:
    """Planes that this process has open, one for each account; a fork must make its own.

    One in use is never closed to make room: one that somebody holds, one with a call under way, one
    with batches that wait for a flush.
    """

    def __new__(
        cls, planes: Planes, master_key: bytes, *, open_max: int, idle_seconds: float
    ) -> Self:
        """At most `open_max` of `planes` stay open, those used last.

        Raises `ValueError` for a key that has not 32 bytes, and for a time that is none.
        """
    def plane(self, account_id: str, tenant_key: str) -> Plane:
        """The open store of the account, whose tenant has the slug `tenant_key`.

        Every call looks at its files, if it has any: those that are missing are reported and those
        that were replaced are opened anew. One that is damaged is not opened again while nobody
        touches them, or for 10 seconds in a database. Raises `StoreError`.
        """
    def release(self, account_id: str, plane: Plane | None = None) -> None:
        """Closes an account's store, if it still is `plane`.

        Raises the `StoreError` of the flush before; it is closed all the same.
        """
    def close_unused(self, accounts: Callable[[], set[str] | None] | None) -> list[str]:
        """Closes what nobody has used for the idle time, what is more than may be open, and what
        was deleted: its key file is gone, or it is in a database and not of what `accounts` gives.

        These are `None` if they are unknown. Gives the faults of flushes before stores were closed
        here or in `plane`.
        """
    def waiting(self) -> dict[str, tuple[Plane, int]]:
        """Stores with batches that wait for a flush, and their sealed bytes."""
    def flush(self, account_id: str, plane: Plane) -> None:
        """`Plane.flush`; a store that fails is released unless it may be flushed again later.

        Raises `StoreError`.
        """
    def close(self) -> list[str]:
        """Closes all of them, flushed before. Gives faults as `close_unused` does."""

@final
class Plane:
    """One tenant's sealed store. Safe to share between threads."""

    @staticmethod
    def in_memory(tenant_key: str) -> Plane:
        """A store that lives and dies with this process: the oracle of the tests."""
    def write_json(
        self,
        body: bytes | RequestBody,
        *,
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: int | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """Writes one batch, a JSON array of records; on return it is durable.

        The batch is atomic: it is stored whole, less the individually rejected records, or not at
        all. With `buffer_bytes_max` it is not yet durable on return: it waits for the next `flush`,
        beside others of that many sealed bytes at most; where they leave no room it is refused
        (`ingest_buffer_full`). `tags_max` and `fields_max` bound a record, `tenant_fields_max`,
        `tenant_series_max` and `tenant_names_bytes_max` all that the store has: beyond them the
        batch is refused (`invalid_input`, `field`: `tags` or `fields`). `cursor` is the key of an
        import (16 bytes) and its position (at most 64 bytes), which is stored with the batch or not
        at all. `now_ns` replaces the clock. Raises `Refused` (`TenantFull` for the bounds of the
        store), `StoreError`.
        """
    def write_protobuf(
        self,
        body: bytes,
        *,
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: int | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """As `write_json`, of a serialized `fleet.telemetry.v1.WriteRequest`.

        A refusal of the contract is `invalid_input` (`field`: `payload`, `entity_id`, `tags`,
        `fields`, `measurement`, `time`), `batch_too_large` or `field_type_conflict`.
        """
    def write_lines(
        self,
        body: bytes,
        *,
        precision: Precision = "ns",
        cursor: tuple[bytes, bytes] | None = None,
        now_ns: int | None = None,
        **bounds: Unpack[_BatchBounds],
    ) -> WriteResult:
        """As `write_json`, of lines in InfluxDB's line protocol with times in units of `precision`.

        A line without a time has the ingest instant, rounded down to a whole unit. Integers (`1i`,
        `1u`) are stored as numbers like all others. Indices count the lines that hold a record:
        empty ones and comments are passed over. Besides the faults of JSON there are
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
        now_ns: int | None = None,
        **bounds: Unpack[_RecordBounds],
    ) -> WriteResult:
        """Writes the records of a text, or of its bytes before `end`, as `write_json` writes
        those of an array.

        To a position in `cursor` that is a number, that of the lines of the text is added: 8 bytes
        with the lowest first are stored. Indices count records as `TextFormat.records` does.
        """
    def write_arrow(
        self,
        stream: object,
        *,
        mapping: Mapping[str, object] | None = None,
        cursor: bytes | None = None,
        first_row: int = 0,
        now_ns: int | None = None,
        **bounds: Unpack[_RecordBounds],
    ) -> ArrowWrites:
        """Writes rows of anything with `__arrow_c_stream__`, piece by piece as they are asked for.

        Each piece has at most 65,536 rows of one batch of the stream and is stored as `write_json`
        stores a batch of the same records: by the same rules, whole or not at all, durable when it
        is given. Nulls are fields and tags that a row does not have. Rows are counted from
        `first_row` in faults and `rejected_indices`. `cursor` is the key of an import (16 bytes):
        the index of the row after a piece, 8 bytes with the lowest first, is stored with it.

        Without `mapping` the stream has the columns of a `scan`. Else `mapping` has `time` (a
        column of timestamps, dates, ISO 8601 texts, or integers with `time_unit`: `s`, `ms`, `us`
        or `ns`), `measurement` (a name, or `{"column": COLUMN}`), and if wanted `entity` (a
        column), `tags` (`{TAG: COLUMN}`, texts or integers), `fixed_tags` (`{TAG: VALUE}`) and
        `fields` (`{FIELD: COLUMN}`; else all other columns under their names). Fields are
        integers, floating point numbers, booleans and texts, also out of dictionaries.

        Raises `ValueError` for columns that do not fit; the iterator raises it for a stream that
        fails, and `Refused` and `StoreError` as `write_json` does: pieces before stay stored.
        """
    def latest_json(
        self,
        *,
        as_of_ns: int | None = None,
        freshness_ns: int = 300_000_000_000,
        measurement: str | None = None,
        now_ns: int | None = None,
    ) -> bytes:
        """The answer of `GET /topology`: newest sample per (measurement, entity) in
        `[as_of - freshness, as_of)`. Raises `Refused`, `StoreError`.
        """
    def latest_page(
        self,
        *,
        measurement: str | None = None,
        search: str = "",
        entity_id: str | None = None,
        first: int = 0,
        entities_max: int = 200,
        bytes_max: int = 4_194_304,
        now_ns: int | None = None,
    ) -> bytes:
        """Some of the entities that have a sample, of any age and of any measurement, as JSON.

        `entities` are as `latest_json` has them, by measurement and id, from the one at `first` on:
        at most `entities_max`, and no further one after `bytes_max` bytes. `total` is the number of
        those whose id holds `search` (ASCII letters of either case) and is `entity_id` if that is
        given, `measurements` the number of entities of each measurement. Raises `StoreError`.
        """
    def series_json(
        self,
        *,
        entity_ids: Sequence[str],
        start_ns: int,
        end_ns: int | None = None,
        measurement: str = "telemetry",
        fields: Sequence[str] | None = None,
        interval: Interval | None = None,
        agg: Aggregation | None = None,
        point_budget: int = ...,
        answer_values_max: int = ...,
        history_horizon_days: int = ...,
        raw_span_seconds: int = ...,
        any_measurement: bool = False,
        now_ns: int | None = None,
    ) -> bytes:
        """The answer of `GET /topology/series`. `fields` of `None` or empty means all numeric ones,
        `any_measurement` lets a caller read those that the contract does not name.

        It holds at most `point_budget` rows and `answer_values_max` values, times and nulls
        included; where there are more it is cut at one time for all entities, `next_start`. The
        first time is answered in any case. Memory follows the values read, never rows times
        channels.

        Raises `Refused`, `StoreError`.
        """
    def latest_frame(
        self,
        measurement: str,
        *,
        entity_ids: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        as_of_ns: int | None = None,
        freshness_ns: int = 300_000_000_000,
        now_ns: int | None = None,
    ) -> ArrowStream:
        """As `latest_json`, any measurement, one row per entity: `entity_id`, `observed_at`
        (timestamp[ns, UTC]), `tags` (JSON object in a string), then one column per field that
        any of them has. `entity_ids` and `fields` restrict both; `fields=[]` leaves the tags.

        Raises `StoreError`, and `ValueError` for a frame of more than four million cells nearly
        all of which are empty.
        """
    def series_frame(
        self,
        *,
        entity_ids: Sequence[str],
        start_ns: int,
        end_ns: int | None = None,
        measurement: str = "telemetry",
        fields: Sequence[str] | None = None,
        interval: Interval | None = None,
        agg: Aggregation | None = None,
        now_ns: int | None = None,
    ) -> ArrowStream:
        """Rows of several entities one below the other: `entity_id`, `time` (timestamp[ns, UTC]),
        then one double column per channel. Any measurement, any span, no point budget.

        Raises `StoreError`, and `ValueError` for a frame of more than four million cells nearly
        all of which are empty.
        """
    def scan(
        self,
        start_ns: int,
        end_ns: int,
        *,
        measurements: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        now_ns: int | None = None,
    ) -> RowStream:
        """All rows with `start_ns <= time < end_ns`, those without `entity_id` too, batch by batch.

        Columns: `time` (timestamp[ns, UTC]), `measurement` (dictionary of utf8), `tags` (map of
        utf8 to utf8, by key), then by name a nullable column per field that occurs beside the rows:
        float64, bool or utf8. It is called as the field, with `:float`, `:bool` or `:text` behind
        where the field has two types, is called as another column, or ends so itself.

        Rows come by day, then by measurement, entity and time; those of one entity and instant in
        the order in which they were written. `fields` leaves out rows that have none of them.
        `now_ns` replaces the clock, which decides what retention hides.

        All batches are of one snapshot, taken here; each has at most 65,536 rows and about 8 MiB.
        While the stream lives, so does the store, and segments that compaction replaces stay on
        disk. Raises `StoreError`; an error of a later batch is raised by the library that reads it.
        """
    def answers_hash(self) -> int:
        """Hash (64 bits) over everything that `scan` answers, nothing of it hidden by retention.

        Stores that hold the same rows have the same one, however they are compacted
        (`docs/format.md`, "Hash of answers"). With more fields than a scan may have it holds good
        if nobody writes meanwhile. Raises `StoreError`.
        """
    def describe(
        self, measurement: str | None = None, entity: str | None = None
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Contents out of names, indexes of segments and heads of the log, of one measurement or
        all, of one entity or all rows: `{"measurements": {NAME: CONTENTS}}`. CONTENTS are `rows`,
        `first_ns` and `last_ns` (`None` without rows), `series` (tag sets), `entities` (`{"count",
        "first"}`, the first 100 ids in order), `tags` (as much of the values of each key but
        `entity_id`) and `fields` (`float`, `bool` or `text` by name).

        Rows count until compaction removes them, also where a deletion or retention hides them;
        names stay. Raises `StoreError`.
        """
    def ingest_lead_ns(self, *, now_ns: int | None = None) -> int:
        """How far the last ingest instant lies ahead of `now_ns`, in nanoseconds, as far as the log
        was followed; 0 up to the 5 seconds that reads follow.
        """
    def newest_ingest_ns(self) -> int | None:
        """The newest instant of a write, as of the last `follow`; `None` if there was no write.

        Writes more than a day after all before them do not count: the clock may have jumped.
        """
    def ping(self) -> None:
        """Reads the store's head. Raises `StoreError`."""
    def follow(self) -> None:
        """Applies what other processes committed, so that the next read need not."""
    def knows_any(self, measurements: Sequence[str]) -> bool:
        """True where a row of one of these was ever written, by any process; also where deletion or
        retention has hidden it since. Raises `StoreError`.
        """
    def stats(self) -> Stats: ...
    def seal(self, plain: bytes) -> bytes:
        """Seals bytes that are kept beside the plane, under its data key: they end with it."""
    def unseal(self, sealed: bytes) -> bytes:
        """Bytes that `seal` sealed. Raises `StoreDamaged` for anything else."""
    def name_hash(self, name: bytes) -> bytes:
        """A keyed hash of 16 bytes, to look up under what must not be written down."""
    def cursor(self, key: bytes) -> bytes | None:
        """Position that the last batch of the import with this key was written with; `None` for
        one that is not known, or was pushed out by 16 others. Raises `StoreError`.
        """
    def forget_cursor(self, key: bytes) -> None:
        """Forgets an import that has ended. Raises `StoreError`."""
    def trial(self) -> Plane:
        """A plane in memory that has the names of this one and keeps no row: what it takes, refuses
        or rejects, this one would. Raises `StoreError`.
        """
    def flush(self) -> None:
        """Makes durable what was written with `buffer_bytes_max`.

        Raises `StoreFull`, after which everything still waits, and `StoreUnavailable` where what
        waited may not be stored; its message says how many records.
        """
    def buffered_bytes(self) -> int:
        """Sealed bytes that wait for `flush`."""
    def compact(
        self,
        *,
        whole: bool = False,
        after_seconds: int = 3600,
        now_ns: int | None = None,
        trust_clock: bool | None = None,
    ) -> Compacted | None:
        """Does what is due: compacts the log if it is large or has a block that is so old, merges
        segments, removes those that retention hides. `whole` compacts the log as it stands. `None`
        where another process is at it. Raises `StoreError`; what is stored is as it was before.

        Without trust, a clock more than a day ahead of the newest ingest instant removes nothing.
        `trust_clock` is by default true with `now_ns`, else `is_clock_believed()`.
        """
    def upcoming(self, *, after_seconds: int = 3600, now_ns: int | None = None) -> Upcoming:
        """Work left to do, and its time, so that nobody has to ask before. Raises `StoreError`."""
    def delete(
        self,
        start_ns: int,
        end_ns: int,
        *,
        measurements: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> Deleted | None:
        """Hides the rows with `start_ns <= time < end_ns` that are committed by now, of some
        measurements and entities or of all, at once from the reads of every process; `compact`
        removes them from disk. Rows written later are not hidden. `dry_run` only counts them.
        Rows that retention hides count until they are removed. `None` where another process
        compacts.

        Raises `ValueError` for a start not before the end, an empty list, names of more than 64
        KiB, and where 128 deletes wait for `compact`; `StoreError`. Then nothing is hidden.
        """
    def set_retention(self, seconds: int | None) -> None:
        """Sets how long rows are kept, `None` for ever: older ones vanish at once from the reads of
        every process, and from disk with a later `compact`.

        Raises `ValueError` for less than a second, `StoreError`.
        """
    def close(self) -> None:
        """Ends the use of this store: what waits for `flush` is stored, as far as that goes, and
        later calls raise `StoreUnavailable`, as do calls under way at their next block.

        Files, descriptors, rows in memory and the data key, which is overwritten, go with the last
        of these calls, before this returns where there is none.
        """

@final
class Cluster:
    """The database and the objects of an installation that many nodes share.

    Making one asks nobody: a process connects with its first use, after which a fork must make its
    own. A build without the PostgreSQL backend raises `ValueError`. Safe to share between threads.
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
        `az://` or `file:///DIRECTORY`. Pieces of objects are kept in the folder `cache`, of about
        `cache_bytes`. `connections` is the number of each process. With `quorum` a standby has each
        commit before it is acknowledged; with `managed` a provider sees to that. Raises
        `ValueError`, which does not repeat a URL.
        """
    def install(self, environment: str, master_key_check: bytes) -> bool:
        """Makes the tables, true, or joins the installation that is there, false.

        Raises `ValueError` where that is of another environment or master key, `StoreError`.
        """
    def sweep(self, *, keep_seconds: int = 86400) -> tuple[int, int]:
        """Makes the hours of the log that come next; removes those that are over and compacted, and
        objects that no manifest has named for `keep_seconds`. The numbers of both, 0 where another
        process is at it.

        Raises `StoreDamaged` where the object store lacks a segment: then the log that has its rows
        stays. `StoreError`, `ValueError` without objects.
        """
    def check(self, environment: str, master_key_check: bytes) -> None:
        """Raises `ValueError` where the installation is another one or of another version,
        `StoreError` where there is none or the database cannot be used.
        """
    def beat(self, node: str, place: str, name: str, version: str) -> bool:
        """Notes that the node whose id is the UUID `node` serves at `place`.

        False, and nothing is noted, while it serves at another one, or did until ten seconds ago.
        Raises `StoreError`.
        """
    def look(self, node: str) -> tuple[int, str | None]:
        """Microseconds since 1970 by the database's clock, and the place where a node serves.

        Raises `StoreError`.
        """
    def nodes(self) -> list[tuple[str, str, str, float]]:
        """Nodes that served within the last day: id, name, version, seconds of silence.

        Raises `StoreError`.
        """
    def permissions(self) -> tuple[bool, bool, bool]:
        """True for each right of the role: to make tables, to change and drop those that there are,
        to see the state of replication. Raises `StoreError`.
        """
    def probe_objects(self) -> bool:
        """Writes an object, reads it, looks for it in a list, and deletes it.

        False where the list is refused, which nothing but people needs. Raises `StoreError`, which
        says what else cannot be done, and `ValueError` without objects.
        """
    def facts(self) -> tuple[str, str, int, int, int] | None:
        """Version of PostgreSQL, its `synchronous_standby_names`, the standbys that stream of them,
        bytes of the database, and microseconds since 1970 by its clock. Raises `StoreError`.
        """
    def database_now_us(self) -> int:
        """Microseconds since 1970 by the clock of the database. Raises `StoreError`."""

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
        master_key: bytes,
        *,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> Records:
        """An LMDB environment, opened with the first use. Its format has the `name`.

        Records are sealed for this name, their space and their key. `counted` has spaces and a
        file. The file gets the number of changes of these spaces. The first use of such a store
        looks at all records, and compares the number: an older copy of the store is refused then.

        While its files are damaged or gone a use raises `RecordsUnavailable`, and the next use
        opens them again. Raises `ValueError` for a master key that has not 32 bytes.
        """
    @staticmethod
    def create(
        folder: str | os.PathLike[str],
        name: str,
        spaces: Sequence[str],
        master_key: bytes,
        *,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> None:
        """Makes `folder`, of mode 0700, and in it an environment without records.

        Raises `RecordsUnavailable`, also if there is such a folder.
        """
    @staticmethod
    def in_cluster(
        cluster: Cluster, name: str, spaces: Sequence[str], master_key: bytes
    ) -> Records:
        """The store `name` in PostgreSQL, asked with each use."""
    @staticmethod
    def replica(
        cluster: Cluster,
        name: str,
        spaces: Sequence[str],
        master_key: bytes,
        *,
        follow: bool,
        counted: tuple[Sequence[str], str | os.PathLike[str]] | None = None,
    ) -> Records:
        """The store `name` of PostgreSQL in the memory of this process.

        With `follow` a thread asks twice a second for changes, from the first use on; without it
        each transaction does.
        """
    def is_of_master_key(self) -> bool:
        """True if the store was made with this master key. Raises `RecordsUnavailable`."""
    def is_sealed(self) -> bool:
        """False for a store of 0.3.0, whose records lie open, and for one that was never used.

        Raises `RecordsUnavailable`.
        """
    def unsealed_accounts(self) -> list[str]:
        """Accounts of a store without a seal. Raises `RecordsUnavailable`."""
    def take_over(self, facts: Sequence[bytes]) -> bool:
        """Seals the records that fleetcast 0.3.0 wrote without a seal, in one transaction.

        So are the facts under these keys. Returns false if the store has a seal. Raises
        `RecordsUnavailable`, also if the file of `counted` says that the store was sealed once.
        """
    def check(self) -> None:
        """Looks at all records: each must be what was written last in its place.

        Raises `RecordsUnavailable`, with what is wrong.
        """
    @property
    def place(self) -> str:
        """The folder, or "PostgreSQL"."""
    def begin(self, *, write: bool) -> RecordsTransaction:
        """A transaction, to be used in a block of `with`. With `write` no other transaction of the
        store writes until its end, in any process; in PostgreSQL it ends by itself after 10 idle
        seconds. A block must not begin another transaction of the store. Raises
        `RecordsUnavailable`.
        """
    def renew(self) -> bool:
        """Looks for changes that no transaction has seen. Returns true if there may be some.

        Raises `RecordsUnavailable`.
        """
    def close(self) -> None:
        """Releases what is open; the next use opens it again."""

@final
class RecordsTransaction:
    """The records as they were when it began, and its own changes.

    The changes are made when its block ends, all or none, and are durable then; if the block raises
    they are not made. Each method raises `RecordsUnavailable`; if that comes with the end of the
    block and says so, the change may be stored.
    """

    version: int
    """Number of the last change of others that is seen here; each change has a higher number."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commits, unless the block raised or it only reads."""
    def get(self, space: str, key: bytes) -> bytes | None:
        """One value."""
    def load(self, space: str, keys: Sequence[bytes]) -> None:
        """Reads the values of many keys at once, for `get`."""
    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Adds or replaces a record. Raises `ValueError` if it only reads."""
    def delete(self, space: str, key: bytes) -> None:
        """Deletes a record, if it is there. Raises `ValueError` if it only reads."""
    def under(
        self, space: str, prefix: bytes, first: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with `prefix`, ascending from `first` on, and their values."""
    def count(self, space: str) -> int:
        """Number of records of a space."""

@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Record:
    """A record of accounts, made of its members as keywords. Times are whole seconds since 1970.

    Records are equal if all members are. A hash is the keyed one of a secret, in hexadecimal.
    """

    SPACE: Final[str]
    """The space of these records."""

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - as of the members
        """The record with other values of these members. Raises `TypeError`."""
    def encode(self) -> bytes:
        """The bytes of the record, JSON."""
    @classmethod
    def get(cls, view: RecordsTransaction, key: str) -> Self | None:
        """The record of a key, `None` also for a text that cannot be a key.

        Raises `RecordsUnavailable`.
        """
    @classmethod
    def all(cls, view: RecordsTransaction, prefix: str = "") -> dict[str, Self]:
        """All records by their keys, ascending. Raises `RecordsUnavailable`."""
    def put(self, view: RecordsTransaction) -> None:
        """Adds or replaces it under its name or id.

        Raises `RecordsUnavailable`, and `ValueError` if the transaction only reads.
        """
    @classmethod
    def delete(cls, view: RecordsTransaction, key: str) -> None:
        """Deletes the record of a key, if it is there. Raises as `put`."""

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
        """Returns true if it is over, or was not used for half an hour, or was used more than a
        minute from now, under a wrong clock."""

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

    `str` gives it.
    """

    id: str
    """Id of the record."""

    def __new__(cls, kind: Literal["key", "token", "session"], environment: str = "") -> Self:
        """A new id and a new secret; `environment` is that of a key.

        Raises `ValueError` for what can be no environment, `StoreError` without random bytes.
        """
    @classmethod
    def read(cls, kind: Literal["key", "token", "session"], text: str) -> Self | None:
        """A text of this kind, `None` if it is none."""
    def hash(self, pepper: bytes) -> str:
        """HMAC-SHA-256 of the secret under `pepper`, in hexadecimal."""
    def proves(self, pepper: bytes, kept: str | None) -> bool:
        """Returns true if `kept` is the hash. `None` costs the same hash and comparison."""
