"""The tour on one screen: a line for each endpoint, with what came back in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetcast.cli.demo.tour import Reply

_BARS = "▁▂▃▄▅▆▇█"
_BARS_MAX = 16
_REQUEST_WIDTH = 28
_FAILED_FROM = 400


def sparkline(values: Sequence[float]) -> str:
    """Returns a bar for each of the last values. Example: 1, 2, 4 are `▁▃█`."""
    shown = values[-_BARS_MAX:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0
    return "".join(_BARS[int((value - low) / span * (len(_BARS) - 1) + 0.5)] for value in shown)


def line_of(reply: Reply) -> str:
    """Returns the line of an answer: request, status, and what came back."""
    path = reply.request.partition("?")[0]
    status = str(reply.status) if reply.status else "OK"
    colour = "red" if reply.status >= _FAILED_FROM else "green"
    words = "; ".join(_words(reply, path))
    return f"  {path:<{_REQUEST_WIDTH}}{click.style(f'{status:<5}', fg=colour)}{words}"


def documents(replies: Sequence[Reply]) -> str:
    """Returns all requests with their whole answers."""
    return "\n\n".join(
        f"{reply.request}\n{reply.status} {json.dumps(reply.body, indent=2)}" for reply in replies
    )


def _words(reply: Reply, path: str) -> list[str]:
    if reply.status >= _FAILED_FROM:
        return [str(reply.body.get("error", ""))]
    found = next((write for name, write in _ANSWERS.items() if path.startswith(name)), None)
    return found(reply.body) if found else []


def _series(body: Mapping[str, Any]) -> list[str]:
    step = f"by {body['interval']}" if body["interval"] else "raw"
    return [
        f"{each['entity_id']} {step} {_course(each['channels'].get('snr_db', ()))}"
        for each in body["series"]
    ]


def _topology(body: Mapping[str, Any]) -> list[str]:
    values = [entity["fields"].get("snr_db") for entity in body["entities"]]
    return [f"{len(values)} links, {_course(values)}"]


def _predictions(body: Mapping[str, Any]) -> list[str]:
    courses: dict[str, list[float]] = {}
    for item in body["items"]:
        courses.setdefault(item["link_id"], []).append(item["value"]["snr_db_p50"])
    return [f"{link} next hour {_course(values)}" for link, values in courses.items()]


def _account(body: Mapping[str, Any]) -> list[str]:
    usage = body["usage"]
    return [
        (
            f"{usage['records_accepted_total']:,} records, {usage['series_count']} series,"
            f" {usage['storage_bytes']:,} bytes"
        )
    ]


def _course(values: Sequence[float | None]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return "no snr_db"
    return f"{sparkline(found)} {found[0]:.1f} to {found[-1]:.1f} dB"


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "POST /telemetry": lambda body: [f"the last batch: {body['accepted_count']:,} records stored"],
    "gRPC": lambda body: [f"{body['accepted_count']:,} records stored"],
    "GET /health": lambda body: [body["status"]],
    "GET /topology/series": _series,
    "GET /topology": _topology,
    "GET /predictions": _predictions,
    "GET /account/state": _account,
}
