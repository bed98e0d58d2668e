"""No plaintext of a measurement, tag, field or value anywhere in the data directory."""

from __future__ import annotations

import contextlib
import json
import stat
import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Engine
from fleetcast.errors import StoreDamaged

from .service import Service, prepare, start

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("measurementzq", "tagkeyzq", "tagvaluezq", "entityzq", "fieldzq", "stringvaluezq")
UNSEEN = b'"event":"records are stored that no read shows"'
MEASUREMENT, TAG_KEY, TAG_VALUE, ENTITY, FIELD, TEXT = WORDS
FLOATS = (-2.71828182845904e-117, 31415.92653589793e44, 1234567.0987654321)
CONSTANT = 9.87654321e-55
MARKERS = {
    **{word: word.encode() for word in WORDS},
    **{f"{word} in UTF-16": word.encode("utf-16-le") for word in WORDS},
    **{f"text of {value!r}": repr(value).encode() for value in (*FLOATS, CONSTANT)},
    **{f"bits of {value!r}": struct.pack("<d", value) for value in (*FLOATS, CONSTANT)},
    **{f"bits of {value!r}, big-endian": struct.pack(">d", value) for value in FLOATS},
}
# Certificates and settings are no secret, and the log is this test's own file.
NOTHING_SECRET = ("ca.pem", "server.pem", "fleetcast.toml", "serve.log")


def batch(number: int) -> list[dict]:
    now = datetime.now(UTC)
    return [
        {
            "measurement": name,
            "time": (now - timedelta(seconds=number + row)).isoformat(),
            "tags": {"entity_id": f"{ENTITY}-{row}", TAG_KEY: TAG_VALUE},
            "fields": {
                FIELD: FLOATS[row % len(FLOATS)],
                f"{FIELD}_constant": CONSTANT,
                f"{FIELD}_text": TEXT,
                f"{FIELD}_{row}_{number}": f"{TEXT}{row}",
            },
        }
        for name in (MEASUREMENT, "link")
        for row in range(9)
    ]


def use(service: Service) -> None:
    """Writes accepted and refused batches that hold the markers, and reads them by name."""
    for number in range(5):
        assert service.post(batch(number)).status == 202
    conflict = service.post([{**batch(0)[0], "fields": {FIELD: TEXT}}])
    assert (conflict.status, conflict.json["field"]) == (400, FIELD)
    assert service.post([{**batch(0)[0], "time": TEXT}]).status == 422
    assert service.post(json.dumps(batch(0)).encode()[:-9]).status == 422
    topology = service.get("/topology").body
    assert all(MARKERS[word] in topology for word in WORDS)
    assert all(MARKERS[f"text of {value!r}"] in topology for value in (CONSTANT,))
    read = {"measurement": "link", "start": (datetime.now(UTC) - timedelta(minutes=5)).isoformat()}
    series = service.get("/topology/series", entity_id=f"{ENTITY}-1", fields=FIELD, **read)
    assert series.json["series"][0]["point_count"] > 0
    assert service.get("/topology/series", entity_id=TEXT, fields=TAG_VALUE, **read).status == 200
    assert service.get("/topology", measurement=MEASUREMENT).status == 400
    assert service.get(f"/{ENTITY}").status == 404


def found_in(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"plane.mdb", "plane.mdb-lock", "key", "serve.log"}
    stored = {}
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # such as a note of upkeep that has ended
            stored[path] = path.read_bytes()
            if path.name == "serve.log":
                # An operator has to know which measurement no read shows.
                lines = stored[path].splitlines()
                stored[path] = b"\n".join(line for line in lines if UNSEEN not in line)
    return [
        f"{marker} in {path.relative_to(folder)}"
        for path, content in stored.items()
        for marker, pattern in MARKERS.items()
        if pattern in content
    ]


def open_to_others(folder: Path) -> dict[str, str]:
    """Modes by path, other than 0700 for a folder and 0600 for a file."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # as above
            mode = path.stat().st_mode
            expected = 0o700 if stat.S_ISDIR(mode) else 0o600
            if path.name not in NOTHING_SECRET and mode & 0o777 != expected:
                found[path.relative_to(folder).as_posix()] = oct(mode)
    return found


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nothing_of_the_telemetry_is_readable_on_disk(tmp_path, end) -> None:
    data = tmp_path / "data"
    service = start(data, prepare(data))
    try:
        use(service)
        while_open = found_in(data)
        assert open_to_others(data) == {}
    finally:
        getattr(service, end)()
    assert while_open + found_in(data) == []

    (folder,) = (data / "planes").iterdir()
    engine = Engine(folder.parent, bytes(32))
    with pytest.raises(StoreDamaged):
        engine.plane(folder.name, "acme")
    # The right key opens the same bytes, so that the refusal above was the key's.
    own = Engine(folder.parent, bytes.fromhex((data / "master.key").read_text()))
    assert own.plane(folder.name, "acme").stats().rows == 5 * 18
    own.close()
