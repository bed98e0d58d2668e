"""The demonstration: a service, a fleet, and an answer of every endpoint."""

from __future__ import annotations

import json
import signal
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetcast.accounts import SCOPES
from fleetcast.cli.demo.fleet import generated_fleet
from fleetcast.cli.demo.sample import sampled_fleet
from fleetcast.cli.demo.service import running_service
from fleetcast.cli.demo.tour import Gateway, HttpSession, Reply, load, read_paths
from fleetcast.errors import OperatorError
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory
from fleetcast.installation.opening import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.cli.common import Run
    from fleetcast.cli.demo.fleet import Record

_TENANT = "demo"
_SHOWN_CHARACTERS = 1200
_ENTITIES_SHOWN = 2
_CURL_RECORD = {
    "measurement": "link",
    "time": "2030-01-01T00:00:00Z",  # a future time is stored as the time of the write
    "tags": {"entity_id": "link-1"},
    "fields": {"snr_db": 21.5},
}


def demonstrate(run: Run, *, once: bool, sample: Path | None) -> None:
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
        try:
            with running_service(directory.root) as (process, ready):
                base = str(ready["http"])
                tour = _tour(HttpSession(base, key), Gateway(ready, key), fleet, now)
                _print_tour(run, base, key, list(tour))
                if not once:
                    click.echo(f"Console: {ready['admin']}/console/ opens with {token}", err=True)
                    click.echo("The service stays up until Ctrl-C.", err=True)
                    message = f"the service ended with status {process.wait()}"
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
        f"Loaded {accepted} records over HTTP and {sent.body['accepted_count']} of"
        f" {len(links)} links over gRPC.",
        err=True,
    )
    yield acknowledgment
    yield sent
    for path, statuses in read_paths(list(links)[:_ENTITIES_SHOWN], now).items():
        yield client.get(path).expect(*statuses)
    client.close()


def _print_tour(run: Run, base: str, key: str, answers: list[Reply]) -> None:
    lines: list[str] = []
    for answer in answers:
        text = json.dumps(answer.body, indent=2)
        if len(text) > _SHOWN_CHARACTERS:
            text = text[:_SHOWN_CHARACTERS] + "\n  …"
        lines += [f"{answer.request}\n{answer.status} {text}", ""]
    lines += [f"Key: {key}", "", "Try it:"]
    for answer in answers:
        method, path = answer.request.split(" ", 1)
        if method == "GET":
            lines.append(f"  curl -H 'x-api-key: {key}' '{base}{path}'")
    lines.append(
        f"  curl -H 'x-api-key: {key}' -H 'Content-Type: application/json'"
        f" '{base}/telemetry' -d '{json.dumps([_CURL_RECORD], separators=(',', ':'))}'"
    )
    document = {"http": base, "key": key, "answers": [answer._asdict() for answer in answers]}
    run.answer(document, "\n".join(lines))
