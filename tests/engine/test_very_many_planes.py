"""More open planes in one process than there are keys of threads: 1,024 in the C library."""

from __future__ import annotations

import ctypes
import shutil

from fleetcast.engine import Engine, encode_records

MASTER_KEY = bytes(32)
PLANES = 1_100
BODY = encode_records([{"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}])


def test_a_process_opens_more_planes_than_there_are_thread_keys(tmp_path):
    """From 1,011 on no plane opened, and libraries loaded later aborted."""
    engine = Engine(tmp_path / "planes", MASTER_KEY, open_max=PLANES)
    engine.create_plane("a0")
    engine.plane("a0", "acme").write_json(BODY)
    engine.close()
    first = tmp_path / "planes" / "a0"
    for number in range(1, PLANES):
        shutil.copytree(first, first.with_name(f"a{number}"))
    planes = [engine.plane(f"a{number}", "acme") for number in range(PLANES)]
    assert {plane.stats().rows for plane in planes} == {1}
    planes[-1].write_json(BODY)
    assert planes[-1].stats().rows == 2
    # One key is left for whoever needs it, as each library of forecasts does.
    key = ctypes.c_uint()
    assert ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None) == 0
    planes.clear()
    engine.close()
