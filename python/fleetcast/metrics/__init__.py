"""Counters of the whole service in shared memory, and their text for Prometheus."""

from fleetcast.metrics.counters import Counters as Counters
from fleetcast.metrics.counters import Histogram as Histogram
from fleetcast.metrics.counters import label as label
from fleetcast.metrics.exposition import exposition as exposition
from fleetcast.metrics.exposition import sample as sample
from fleetcast.metrics.shared import KEYED_REST as KEYED_REST
from fleetcast.metrics.shared import Shared as Shared
from fleetcast.metrics.shared import make_shared_memory as make_shared_memory
from fleetcast.metrics.surfaces import REFUSED as REFUSED
from fleetcast.metrics.surfaces import AccountRequests as AccountRequests
from fleetcast.metrics.surfaces import EngineAccounting as EngineAccounting
from fleetcast.metrics.surfaces import Requests as Requests
from fleetcast.metrics.surfaces import Writes as Writes
from fleetcast.metrics.surfaces import engine_accounting as engine_accounting
from fleetcast.metrics.totals import Totals as Totals
