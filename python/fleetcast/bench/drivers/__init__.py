"""Databases that can be measured: one file each, with the particulars of the database."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fleetcast.bench.driver import Driver
    from fleetcast.bench.rows import RowNames

_GROUP = "fleetcast.bench"

# Module and class of each name.
DRIVERS = {
    "http": "fleetcast_http:HttpWrites",
    "grpc": "fleetcast_grpc:GrpcCalls",
    "adapter": "fleetcast_adapter:AdapterWrites",
    "embedded": "fleetcast_embedded:Embedded",
    "sqlite": "sqlite:Sqlite",
    "duckdb": "duck:DuckDb",
    "postgresql": "postgresql:PostgreSql",
    "timescaledb": "postgresql:TimescaleDb",
    "prometheus": "prometheus:Prometheus",
    "questdb": "questdb:QuestDb",
    "victoriametrics": "victoriametrics:VictoriaMetrics",
    "lines": "line_protocol:LineProtocol",
}


def driver(
    name: str, folder: Path, options: Mapping[str, str], names: RowNames | None = None
) -> Driver:
    """Returns the driver of a name, which keeps its files in `folder`. Raises `OperatorError`.

    `names` are those in the rows of the workload, by default the names of trucks. Other packages
    add drivers as entry points of the group `fleetcast.bench`.
    """
    added = {point.name: point for point in entry_points(group=_GROUP)}
    if name in DRIVERS:
        module, _, kind = DRIVERS[name].partition(":")
        made: Driver = getattr(import_module(f"{__name__}.{module}"), kind)(folder, options)
    elif name in added:
        made = added[name].load()(folder, options)
    else:
        message = f"{name} is no driver: there are {', '.join([*DRIVERS, *added])}"
        raise OperatorError(message)
    if names is not None:
        made.names = names
    return made
