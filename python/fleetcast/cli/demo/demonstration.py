"""The demonstration: a service, a fleet, and an answer of every endpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetcast.accounts import SCOPES
from fleetcast.cli.demo.fleet import (
    FADING_LINK,
    FULL_POOL,
    SILENT_LINK,
    fleet_at,
    generated_fleet,
)
from fleetcast.cli.demo.sample import sampled_fleet
from fleetcast.cli.demo.service import running_service, show_end
from fleetcast.cli.demo.summary import documents, line_of
from fleetcast.cli.demo.tour import Gateway, HttpSession, Reply, load, read_paths
from fleetcast.errors import OperatorError
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleetcast.cli.common import Run
    from fleetcast.cli.demo.fleet import Record

_TENANT = "demo"
_ENTITIES_SHOWN = 2
_STEP_SECONDS = 10.0
_CURL_RECORD = {
    "measurement": "link",
    "time": "2030-01-01T00:00:00Z",  # a future time is stored as the time of the write
    "tags": {"entity_id": "link-1"},
    "fields": {"snr_db": 21.5},
}


def demonstrate(run: Run, *, once: bool, sample: Path | None, verbose: bool) -> None:
    """Serves, loads and asks. Without `once` the service runs until Ctrl-C.

    Raises `OperatorError`.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fleetcast-demo-") as folder:
        directory = DataDirectory(Path(folder) / "data")
        key, token = _provisioned(directory)
        now = datetime.now(UTC)
        fleet = generated_fleet(now) if sample is None else sampled_fleet(sample, now)
        log = Path(folder) / "service.log"
        try:
            with running_service(directory.root, log) as (process, ready):
                base = str(ready["http"])
                tour = _tour(HttpSession(base, key), Gateway(ready, key), fleet, now)
                answers = list(tour)
                document = {
                    "http": base,
                    "key": key,
                    "answers": [answer._asdict() for answer in answers],
                }
                lines = [documents(answers)] if verbose else [line_of(each) for each in answers]
                run.answer(document, "\n".join(lines))
                if not once:
                    click.echo(_invitation(ready, key, token, log, moves=sample is None), err=True)
                    _keep_moving(process, HttpSession(base, key), now if sample is None else None)
                    show_end(log)
                    message = f"the service ended with status {process.wait()}: see above"
                    raise OperatorError(message)
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)


def _provisioned(directory: DataDirectory) -> tuple[str, str]:
    """Makes a data directory. Returns a key of its tenant, and a token that opens its console."""
    make_data_directory(directory, "sandbox", {})
    with opened(directory, {}) as installation:
        installation.tenants.create(_TENANT)
        issued = installation.keys.create(
            _TENANT, scopes=SCOPES, environment="sandbox", name="demo"
        )
        token = installation.operators.create(name="demo")
    return str(issued.text), str(token.text)


def _tour(
    client: HttpSession, gateway: Gateway, fleet: Iterator[Record], now: datetime
) -> Iterator[Reply]:
    """Asks every endpoint once, the writes first: links over gRPC, all other records over HTTP."""
    links: dict[str, None] = {}

    def rest() -> Iterator[Record]:
        for record in fleet:
            tags = record["tags"]
            if record["measurement"] == "link" and isinstance(tags, dict):
                links[tags["entity_id"]] = None
                gateway.write(record)
            else:
                yield record

    accepted, acknowledgment = load(client, rest())
    sent = gateway.end()
    click.echo(
        f"Loaded {accepted:,} records over HTTP and {sent.body['accepted_count']:,} of"
        f" {len(links)} links over gRPC.",
        err=True,
    )
    yield acknowledgment
    yield sent
    shown = sorted(links, key=lambda link: link != FADING_LINK)[:_ENTITIES_SHOWN]
    for path, statuses in read_paths(shown, now).items():
        yield client.get(path).expect(*statuses)
    client.close()


def _keep_moving(process: subprocess.Popen[str], client: HttpSession, now: datetime | None) -> None:
    """Writes the fleet's next records until the service ends. A sample of files stands still."""
    newest = None if now is None else now.replace(second=0, microsecond=0)
    while process.poll() is None:
        if newest is not None:
            # The service may end meanwhile, or refuse: ten wrong keys lock this machine out.
            with suppress(OSError, OperatorError):
                load(client, fleet_at(datetime.now(UTC), newest))
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STEP_SECONDS)


def _invitation(
    ready: Mapping[str, str | None], key: str, token: str, log: Path, *, moves: bool
) -> str:
    """Returns what to look at and to try while the service runs."""
    base, console = ready["http"], f"{ready['admin']}/console/"
    lines = ["", f"Console   {console}", f"  token   {token}"]
    if moves:
        links = {
            "the fleet moves": "entities?layout=world",
            "what is ahead": "outlook?threshold=10",
            f"{FADING_LINK} fades in the rain": f"forecasts?measurement=link&entity={FADING_LINK}",
            f"{SILENT_LINK} fell silent": f"channels?measurement=link&entity={SILENT_LINK}",
            f"{FULL_POOL} nears its capacity": (
                f"forecasts?measurement=pool_interval&entity={FULL_POOL}"
            ),
        }
        lines += [
            f"  {words:<30}{console}#/{address}&tenant={_TENANT}"
            for words, address in links.items()
        ]
    record = json.dumps([_CURL_RECORD], separators=(",", ":"))
    return "\n".join(
        [
            *lines,
            f"Read      curl -H 'x-api-key: {key}' '{base}/topology?measurement=link'",
            (
                f"Write     curl -H 'x-api-key: {key}' -H 'Content-Type: application/json'"
                f" '{base}/telemetry' -d '{record}'"
            ),
            f"Log       {log}",
            "Ctrl-C stops the service and removes its data.",
        ]
    )
