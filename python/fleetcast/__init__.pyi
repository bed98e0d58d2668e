from fleetcast.client import (
    ApiError as ApiError,
)
from fleetcast.client import (
    Client as Client,
)
from fleetcast.client import (
    GatewayWriter as GatewayWriter,
)
from fleetcast.client import (
    Options as Options,
)
from fleetcast.client import (
    Record as Record,
)
from fleetcast.client import (
    RefusedBatch as RefusedBatch,
)
from fleetcast.client import (
    SpoolFull as SpoolFull,
)
from fleetcast.client import (
    Tally as Tally,
)
from fleetcast.engine import (
    AGGREGATIONS as AGGREGATIONS,
)
from fleetcast.engine import (
    INTERVALS as INTERVALS,
)
from fleetcast.engine import (
    MEASUREMENTS as MEASUREMENTS,
)
from fleetcast.engine import (
    ArrowStream as ArrowStream,
)
from fleetcast.engine import (
    Compacted as Compacted,
)
from fleetcast.engine import (
    Deleted as Deleted,
)
from fleetcast.engine import (
    Engine as Engine,
)
from fleetcast.engine import (
    Plane as Plane,
)
from fleetcast.engine import (
    RowBatch as RowBatch,
)
from fleetcast.engine import (
    RowStream as RowStream,
)
from fleetcast.engine import (
    Stats as Stats,
)
from fleetcast.engine import (
    TextFormat as TextFormat,
)
from fleetcast.engine import (
    Verified as Verified,
)
from fleetcast.engine import (
    WriteResult as WriteResult,
)
from fleetcast.engine import (
    encode_protobuf as encode_protobuf,
)
from fleetcast.engine import (
    encode_records as encode_records,
)
from fleetcast.engine import (
    field_of_column as field_of_column,
)
from fleetcast.engine import (
    format_time as format_time,
)
from fleetcast.engine import (
    parse_time as parse_time,
)
from fleetcast.engine import (
    peek as peek,
)
from fleetcast.errors import (
    Refused as Refused,
)
from fleetcast.errors import (
    StoreDamaged as StoreDamaged,
)
from fleetcast.errors import (
    StoreError as StoreError,
)
from fleetcast.errors import (
    StoreExists as StoreExists,
)
from fleetcast.errors import (
    StoreFull as StoreFull,
)
from fleetcast.errors import (
    StoreMissing as StoreMissing,
)
from fleetcast.errors import (
    StoreUnavailable as StoreUnavailable,
)
from fleetcast.errors import (
    TenantFull as TenantFull,
)

__version__: str
