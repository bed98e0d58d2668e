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


@dataclass(frozen=True)
class DataDirectory:
    """Paths of the parts of an installation.

    Example: for the root `/data`, `planes` is `/data/planes`.
    """

    root: Path

    @property
    def origin(self) -> Path:
        """The data directory itself, also for copies of its stores."""
        return self.root

    @property
    def control(self) -> Path:
        """The control store."""
        return self.root / "control"

    def accounts_revision(self, settings: Settings) -> Path:
        """File that shows if an older copy of the control store was put back."""
        return self.root / settings.security.accounts_revision_file

    @property
    def planes(self) -> Path:
        """The tenants' data planes."""
        return self.root / "planes"

    @property
    def forecast(self) -> Path:
        """Models, and predictions made with them."""
        return self.root / "forecast"

    @property
    def simulation(self) -> Path:
        """Elements and stations of a simulated topology, if an operator put some there."""
        return self.root / "simulation"

    @property
    def tls(self) -> Path:
        """The self-signed certificate of the gRPC listener."""
        return self.root / "tls"

    @property
    def adapters(self) -> Path:
        """Names for records of other protocols, if an operator put some there."""
        return self.root / "adapters.toml"

    @property
    def lock(self) -> Path:
        """Lock that the one `serve` of this directory holds."""
        return self.root / "serve.lock"

    @property
    def run(self) -> Path:
        """Files of a running service, which are of no use after the service ends."""
        return self.root / "run"

    @property
    def limiter(self) -> Path:
        """Counts that the workers of a running service share."""
        return self.run / "limiter"

    @property
    def adapter_limiter(self) -> Path:
        """Counts as in `limiter`, of the requests to the adapters."""
        return self.run / "adapters"

    @property
    def console_limiter(self) -> Path:
        """Wrong operator tokens by address."""
        return self.run / "console"

    @property
    def upkeep(self) -> Path:
        """Notes of the accounts whose upkeep is under way."""
        return self.run / "upkeep"

    @property
    def audit_log(self) -> Path:
        """Changes that commands have made to accounts."""
        return self.root / "audit.log"

    @property
    def cache(self) -> Path:
        """Copies of data in an object store and a database."""
        return self.root / "cache"

    @property
    def node(self) -> Path:
        """Id of this node among the nodes of an installation."""
        return self.root / "node"

    def node_id(self) -> str:
        """Returns the id of this node. Raises `OperatorError` if the node has no id."""
        try:
            return self.node.read_text().strip()
        except OSError as error:
            message = f"{self.node}: {error.strerror}; make the node anew with fleetcast init"
            raise OperatorError(message) from error

    @property
    def unfinished_restore(self) -> Path:
        """Lock of a restore into an empty directory, removed when the restore is done."""
        return self.root / "restore.unfinished"

    @property
    def restoring(self) -> Path:
        """Locks of restores of single tenants, each named by an account and removed when done."""
        return self.root / "restoring"

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
