"""More open planes in one process than there are keys of threads: 1,024 in the C library."""

from __future__ import annotations

import ctypes
import shutil

from fleetcast.engine import Planes, encode_records

MASTER_KEY = bytes(32)
PLANES = 1_100
BODY = encode_records([{"measurement": "link", "time": "2026-01-01", "fields": {"a": 1.0}}])


def test_a_process_opens_more_planes_than_there_are_thread_keys(tmp_path):
    """From 1,011 on no plane opened, and libraries loaded later aborted."""
    first = Planes.in_directory(tmp_path / "0")
    first.create("plane", MASTER_KEY)
    plane = first.open("plane", MASTER_KEY, "acme")
    plane.write_json(BODY)
    plane.close()
    for number in range(1, PLANES):
        shutil.copytree(tmp_path / "0", tmp_path / f"{number}")
    folders = [Planes.in_directory(tmp_path / f"{number}") for number in range(PLANES)]
    planes = [folder.open("plane", MASTER_KEY, "acme") for folder in folders]
    assert {plane.stats().rows for plane in planes} == {1}
    planes[-1].write_json(BODY)
    assert planes[-1].stats().rows == 2
    # One key is left for whoever needs it, as each library of forecasts does.
    key = ctypes.c_uint()
    assert ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None) == 0
    for plane in planes:
        plane.close()
