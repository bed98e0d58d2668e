"""`fleetcast status`."""

from __future__ import annotations

import click

from fleetcast.cli.common import Run, instant, with_run
from fleetcast.installation.lock import seen

_LISTENERS = ("http", "grpc", "admin", "adapters")
_NOTED = ("version", *_LISTENERS, "grpc_ca")


@click.command()
@with_run
def status(run: Run) -> int:
    """Say if the service runs, since when and on which addresses.

    The exit status is 0 if the service runs, and 1 if it is stopped, starts or stops.
    """
    run.data.require()
    lock = seen(run.data.lock)
    note = lock.note
    state = note.get("state", "running") if lock.held else "stopped"
    since = note.get("since")
    document = {
        "running": state == "running",
        "state": state,
        "crashed": not lock.held and lock.pid is not None,
        "pid": lock.pid if lock.held else None,
        "since": instant(int(since)) if lock.held and isinstance(since, int | float) else None,
        **{name: note.get(name) if lock.held else None for name in _NOTED},
    }
    run.answer(document, _text(run, document))
    return 0 if state == "running" else 1


def _text(run: Run, document: dict[str, object]) -> str:
    if document["crashed"]:
        return f"{run.data.root}: not running; the last serve ended without being stopped"
    if document["pid"] is None:
        return f"{run.data.root}: not running"
    head = f"{run.data.root}: {document['state']} since {document['since']}"
    lines = [f"{head}, process {document['pid']}, version {document['version']}"]
    if document["http"] is not None:  # the addresses are known once everything serves
        lines += [f"  {name.ljust(8)}  {document[name] or 'off'}" for name in _LISTENERS]
    return "\n".join(lines)
