"""The compiled engine, and the Python classes around it.

Only this package and `errors` import the compiled engine. Open an `Engine` after a fork, never
before: LMDB environments do not survive a fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fleetcast._core import (
    AGGREGATIONS as AGGREGATIONS,
    ANSWER_VALUES_MAX as ANSWER_VALUES_MAX,
    BATCH_RECORDS_MAX as BATCH_RECORDS_MAX,
    CALL_RECORDS_MAX as CALL_RECORDS_MAX,
    FIELDS_MAX as FIELDS_MAX,
    HISTORY_DAYS_MAX as HISTORY_DAYS_MAX,
    INTERVALS as INTERVALS,
    MEASUREMENTS as MEASUREMENTS,
    POINTS_MAX as POINTS_MAX,
    RAW_SPAN_SECONDS_MAX as RAW_SPAN_SECONDS_MAX,
    TAGS_MAX as TAGS_MAX,
    TENANT_FIELDS_MAX as TENANT_FIELDS_MAX,
    TENANT_NAMES_BYTES_MAX as TENANT_NAMES_BYTES_MAX,
    TENANT_SERIES_MAX as TENANT_SERIES_MAX,
    VERSION as VERSION,
    ApiKey as ApiKey,
    ArrowStream as ArrowStream,
    Authenticator as Authenticator,
    Cluster as Cluster,
    Compacted as Compacted,
    ConsoleSession as ConsoleSession,
    Decision as Decision,
    Deleted as Deleted,
    KeptHours as KeptHours,
    EndedCall as EndedCall,
    ForecastFamily as ForecastFamily,
    ForecastQuestion as ForecastQuestion,
    ForecastValue as ForecastValue,
    Front as Front,
    FrontRequest as FrontRequest,
    GrpcFront as GrpcFront,
    GrpcNotice as GrpcNotice,
    Identity as Identity,
    KeptForecasts as KeptForecasts,
    LimiterFile as LimiterFile,
    LongAnswer as LongAnswer,
    MasterKeys as MasterKeys,
    NameMapping as NameMapping,
    OpenScores as OpenScores,
    OperatorToken as OperatorToken,
    Plane as Plane,
    Planes as Planes,
    RecentForecasts as RecentForecasts,
    Records as Records,
    RecordStamp as RecordStamp,
    RecordsTransaction as RecordsTransaction,
    Piece as Piece,
    RowBatch as RowBatch,
    RowStream as RowStream,
    SecretText as SecretText,
    Service as Service,
    Serving as Serving,
    Stats as Stats,
    Tenant as Tenant,
    TextFormat as TextFormat,
    Upcoming as Upcoming,
    UsageRecord as UsageRecord,
    Verified as Verified,
    WriteResult as WriteResult,
    assignment_id as assignment_id,
    column_of_field as column_of_field,
    encode_json as encode_json,
    encode_protobuf as encode_protobuf,
    field_of_column as field_of_column,
    forecast_key as forecast_key,
    format_time as format_time,
    is_acceptable as is_acceptable,
    is_clock_believed as is_clock_believed,
    key_fields as key_fields,
    link_features as link_features,
    name_process as name_process,
    note_unreadable as note_unreadable,
    open_secret as open_secret,
    parse_time as parse_time,
    refusal_is_logged as refusal_is_logged,
    routes as routes,
    seal_secret as seal_secret,
    stored_link_features as stored_link_features,
    stored_link_rows as stored_link_rows,
    tell_left_out as tell_left_out,
    time_ns as time_ns,
    write_served as write_served,
)
from fleetcast.engine.glances import Glance as Glance, State as State, peek as peek
from fleetcast.engine.planes import Engine as Engine
from fleetcast.engine.records import (
    encode_records as encode_records,
    encode_rows as encode_rows,
)
from fleetcast.engine.saved import (
    SavedFile as SavedFile,
    SaveDone as SaveDone,
    SavedPlane as SavedPlane,
)

if TYPE_CHECKING:
    from fleetcast._core import (
        EntitySort as EntitySort,
        FieldKind as FieldKind,
        RecordBounds as RecordBounds,
    )

Interval = Literal["15s", "30s", "1m", "5m", "15m", "1h"]
"""An interval of `INTERVALS`."""
Aggregation = Literal["mean", "min", "max", "last"]
"""An aggregation of `AGGREGATIONS`."""
