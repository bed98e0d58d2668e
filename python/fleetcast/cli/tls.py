"""`fleetcast tls …`."""

from __future__ import annotations

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.errors import OperatorError
from fleetcast.installation.lock import seen
from fleetcast.installation.turning import settled
from fleetcast.security.certificate import issue_certificate


@click.group()
def tls() -> None:
    """Renew the certificate of the gRPC listener."""


@tls.command()
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Further name or IP address of this machine; without it the names stay as they were.",
)
@with_run
def renew(run: Run, hosts: tuple[str, ...]) -> None:
    """Make a new certificate by the same authority, so that clients need no new file.

    A running service uses it for new connections.

    Example: fleetcast tls renew --host telemetry.example.com
    """
    with settled(run.data), run.opened() as installation:
        if not run.data.has_own_certificate(installation.settings):
            message = "grpc.certificate is not one of init's: renew it where it came from"
            raise OperatorError(message)
        renewed = issue_certificate(run.data.tls, installation.master_key, hosts)
        installation.stores.audit()(
            "certificate renewed", hosts=renewed.hosts, new_authority=renewed.is_authority_new
        )
    authority = run.data.tls / "ca.pem"
    end = renewed.end.strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "hosts": renewed.hosts,
        "valid_until": end,
        "grpc_ca": str(authority),
        "new_authority": renewed.is_authority_new,
        "running": seen(run.data.lock).held,
    }
    lines = [f"Made a certificate for {', '.join(renewed.hosts)}, good until {end}."]
    if renewed.is_authority_new:
        lines.append(f"Its authority is new as well: give {authority} to all clients.")
    if document["running"]:
        lines.append("The running service takes it with the next connection.")
    run.answer(document, "\n".join(lines))
