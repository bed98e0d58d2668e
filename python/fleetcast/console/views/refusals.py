"""Requests that were refused, by code and by key, and records rejected, by tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetcast.console.history import STEP_SECONDS
from fleetcast.engine import ApiKey
from fleetcast.metrics import KEYED_REST
from fleetcast.surface.answers import Answer, document
from fleetcast.surface.error_codes import ERROR_CODES
from fleetcast.surface.troubles import EXPLANATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleetcast.console.services import ConsoleServices
    from fleetcast.engine import RecordsTransaction

_MINUTE = 60.0
_QUARTER = 900.0
_REJECTED = "rejected "
_TENANTS_MAX = 20
_KEYS_MAX = 50


def refusals(services: ConsoleServices) -> Answer:
    """Returns all codes that were ever sent; the table of codes bounds their number.

    In addition, the keys with the most refusals, and the tenants with the most records that were
    rejected since the service started. Raises `ControlStoreUnavailable`.
    """
    history = services.refusals
    _, minute, now = history.since(_MINUTE)
    seconds, quarter, _ = history.since(_QUARTER)
    return document(
        {
            "step_seconds": STEP_SECONDS,
            "quarter_seconds": round(seconds),
            "codes": [
                {
                    **_code(name),
                    "minute": count - minute.get(name, 0),
                    "quarter": count - quarter.get(name, 0),
                    "total": count,
                    "steps": history.steps(name),
                }
                for name, count in sorted(now.items())
            ],
            **_by_key(services),
            "rejected": _rejected(services),
        }
    )


class _RefusedKey(NamedTuple):
    name: str
    quarter: int
    total: int


def _by_key(services: ConsoleServices) -> Mapping[str, object]:
    """Returns the keys with the most refusals, and the counts of keys that had no room."""
    _, before, now = services.refused_keys.since(_QUARTER)
    found = [_RefusedKey(name, of - before.get(name, 0), of) for name, of in now.items()]
    rest = next((of for of in found if of.name == KEYED_REST), None)
    keys = sorted(
        (of for of in found if of is not rest), key=lambda of: (-of.quarter, -of.total, of.name)
    )
    with services.control.read() as view:
        rows = [_key_row(of, view) for of in keys[:_KEYS_MAX]]
    return {
        "keys": rows,
        "keys_count": len(keys),
        "rest": None if rest is None else {"quarter": rest.quarter, "total": rest.total},
    }


def _key_row(refused: _RefusedKey, view: RecordsTransaction) -> Mapping[str, object]:
    """Returns one row; a key that is gone with its tenant has no name and no scopes."""
    surface, code, tenant, key_id = refused.name.split(" ")
    key = ApiKey.get(view, key_id)
    return {
        "tenant": tenant,
        "key_id": key_id,
        "key": None if key is None else {"name": key.name, "scopes": key.scopes},
        "surface": surface,
        "code": code,
        "quarter": refused.quarter,
        "total": refused.total,
    }


def _rejected(services: ConsoleServices) -> Sequence[Mapping[str, object]]:
    _, before, now = services.records.since(_MINUTE)
    found = [(name, count) for name, count in now.items() if name.startswith(_REJECTED) and count]
    return [
        {
            "tenant": name.removeprefix(_REJECTED),
            "late": count - before.get(name, 0),
            "total": count,
        }
        for name, count in sorted(found, key=lambda item: -item[1])[:_TENANTS_MAX]
    ]


def refused_of_late(services: ConsoleServices) -> list[Mapping[str, object]]:
    """Returns the codes of the last quarter of an hour, the most frequent first."""
    _, before, now = services.refusals.since(_QUARTER)
    grown = {name: count - before.get(name, 0) for name, count in now.items()}
    return [
        {**_code(name), "quarter": count}
        for name, count in sorted(grown.items(), key=lambda item: -item[1])
        if count
    ]


def _code(name: str) -> Mapping[str, object]:
    surface, _, code = name.partition(" ")
    known = ERROR_CODES.get(code)
    status = None if known is None else known.http if surface == "http" else known.grpc
    return {
        "surface": surface,
        "code": code,
        "status": status or None,
        "reason": EXPLANATIONS.get(code, ""),
    }
