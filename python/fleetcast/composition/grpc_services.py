"""Services of a gRPC process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleetcast.composition.probes import telemetry_probes
from fleetcast.composition.serving_stores import serving_stores
from fleetcast.composition.shared_settings import Live
from fleetcast.grpc.services import GrpcServices
from fleetcast.installation.backend import stores_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.composition.shared_settings import SharedSettings
    from fleetcast.installation.directory import DataDirectory
    from fleetcast.metrics import Counters


@contextmanager
def grpc_services(
    directory: DataDirectory, master_key: bytes, shared: SharedSettings, counters: Counters
) -> Iterator[GrpcServices]:
    """Opens the services of one gRPC process, and their stores."""
    stores = stores_of(directory, shared.read(), master_key, follow=True)
    with serving_stores(stores, shared, counters) as authenticator:
        yield GrpcServices(
            settings=Live(shared, lambda settings: settings).current,
            settings_descriptor=shared.descriptor,
            authenticator=authenticator,
            engine=stores.engine,
            probes=telemetry_probes(stores),
            counters=counters,
        )
