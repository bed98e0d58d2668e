"""Data directory of an installation: the paths of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetcast.config import SETTINGS_FILE, resolve
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from fleetcast.config import Override, Resolved, Settings


class _Below:
    """A path below the root of a data directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, directory: DataDirectory, _kind: type) -> Path:
        return directory.below(self._name)


@dataclass(frozen=True)
class DataDirectory:
    """Paths of the parts of an installation.

    Example: for the root `/data`, `planes` is `/data/planes`.
    """

    root: Path

    def below(self, name: str) -> Path:
        """Returns the path of a part."""
        return self.root / name

    @property
    def origin(self) -> Path:
        """The data directory itself, also for copies of its stores."""
        return self.root

    control = _Below("control")
    """The control store."""

    def accounts_revision(self, settings: Settings) -> Path:
        """File that shows if an older copy of the control store was put back."""
        return self.root / settings.security.accounts_revision_file

    planes = _Below("planes")
    """The tenants' data planes."""
    forecast = _Below("forecast")
    """Models, and predictions made with them."""
    simulation = _Below("simulation")
    """Elements and stations of a simulated topology, if an operator put some there."""
    tls = _Below("tls")
    """The self-signed certificate of the gRPC listener."""
    adapters = _Below("adapters.toml")
    """Names for records of other protocols, if an operator put some there."""
    lock = _Below("serve.lock")
    """Lock that the one `serve` of this directory holds."""
    run = _Below("run")
    """Files of a running service, which are of no use after the service ends."""
    limiter = _Below("run/limiter")
    """Counts that the workers of a running service share."""
    adapter_limiter = _Below("run/adapters")
    """Counts as in `limiter`, of the requests to the adapters."""
    console_limiter = _Below("run/console")
    """Wrong operator tokens by address."""
    upkeep = _Below("run/upkeep")
    """Notes of the accounts whose upkeep is under way."""
    audit_log = _Below("audit.log")
    """Changes that commands have made to accounts."""
    cache = _Below("cache")
    """Copies of data in an object store and a database."""
    node = _Below("node")
    """Id of this node among the nodes of an installation."""

    def node_id(self) -> str:
        """Returns the id of this node. Raises `OperatorError` if the node has no id."""
        try:
            return self.node.read_text().strip()
        except OSError as error:
            message = f"{self.node}: {error.strerror}; make the node anew with fleetcast init"
            raise OperatorError(message) from error

    unfinished_restore = _Below("restore.unfinished")
    """Lock of a restore into an empty directory, removed when the restore is done."""
    restoring = _Below("restoring")
    """Locks of restores of single tenants, each named by an account and removed when done."""

    def require(self) -> None:
        """Raises `OperatorError` if `init` did not run, or if a restore did not end."""
        if self.unfinished_restore.exists():
            message = f"a restore into {self.root} has not ended: wait for it, or run it again"
            raise OperatorError(message)
        if not (self.root / SETTINGS_FILE).is_file():
            message = f"{self.root} is no data directory: make one with fleetcast init"
            raise OperatorError(message)

    def grpc_authority(self, settings: Settings) -> Path | None:
        """Returns the authority that clients trust for the certificate of `init`.

        Returns `None` for a certificate from elsewhere. Raises `OperatorError` if the server's
        certificate or key cannot be read.
        """
        for name in (settings.grpc.certificate, settings.grpc.private_key):
            try:
                (self.root / name).read_bytes()
            except OSError as error:
                message = f"gRPC needs {self.root / name}: {error.strerror}"
                raise OperatorError(message) from error
        return self.tls / "ca.pem" if self.has_own_certificate(settings) else None

    def has_own_certificate(self, settings: Settings) -> bool:
        """Returns true if `init` made the certificate, false if it is from elsewhere."""
        return (self.root / settings.grpc.certificate).parent == self.tls

    def settings(self, environ: Mapping[str, str], overrides: Iterable[Override] = ()) -> Resolved:
        """Returns the settings in force. Raises `OperatorError` if `init` did not run."""
        self.require()
        return resolve(self.root, environ, overrides)
