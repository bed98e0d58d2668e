"""The database's disk is full: what is refused, what goes on, and that room is all it takes."""

from __future__ import annotations

import os
import random
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.api import Tenant, at, record, refusal
from tests.service.service import create_tenant
from tests.waiting import until

from .nodes import engine, make_nodes, serving

FULL = {"error": "telemetry_unavailable", "upstream": "postgresql", "retry_after_seconds": 5}
ROWS = 500  # of a batch
OID = "SELECT oid FROM pg_tablespace WHERE spcname = 'small'"
DROP_ALL = """
    DO $$ DECLARE found name; BEGIN
      FOR found IN SELECT DISTINCT nspname
        FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
        JOIN pg_tablespace t ON t.oid = reltablespace
        WHERE spcname = 'small' AND nspname <> 'pg_toast'
      LOOP EXECUTE format('DROP SCHEMA %I CASCADE', found); END LOOP;
    END $$"""
MOUNT = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=700,uid=65534,gid=65534", "fleetcast"]
LEFT_BYTES = 64 << 10
REFUSED = 5  # a smaller one may still fit behind the first


@pytest.fixture
def disk(database, monkeypatch):
    """Folder of the primary for what is created from now on, on a disk of its own."""
    del database
    monkeypatch.setenv("PGOPTIONS", "-c allow_in_place_tablespaces=on")
    with ExitStack() as left:
        engine("sql", "CREATE TABLESPACE small LOCATION ''")
        left.callback(engine, "sql", "DROP TABLESPACE small")
        engine("sql", "GRANT CREATE ON TABLESPACE small TO fleet")
        server = Path(os.environ["ENGINE_WORK"], f"n{engine('primary')}")
        (folder,) = server.joinpath("pg_tblspc", engine("sql", OID)).iterdir()
        try:
            subprocess.run([*MOUNT, folder], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("a disk of a test's own is not to be had here: not root, or no mount(8)")
        left.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
        left.callback(engine, "sql", DROP_ALL)
        engine("sql", "ALTER ROLE fleet SET default_tablespace = small")
        left.callback(engine, "sql", "ALTER ROLE fleet RESET default_tablespace")
        yield folder


def fill(file):
    """Takes nearly all room of the disk that the file is on."""
    room = os.statvfs(file.parent)
    file.write_bytes(bytes(room.f_bavail * room.f_bsize - LEFT_BYTES))


def test_a_full_disk_refuses_writes_reads_go_on_and_room_ends_it(disk, tmp_path):
    dice = random.Random(7)
    nodes = make_nodes(tmp_path, 1)
    with serving(nodes) as (service,):
        tenant = Tenant(service, "acme", None, create_tenant(nodes[0]))
        before, stored = service.processes(), []
        filler = disk / "filler"

        def write():
            numbers = [dice.random() for _ in range(ROWS)]
            start = len(stored) * ROWS
            rows = [record(at((start + n) / 1_000), n=value) for n, value in enumerate(numbers)]
            answer = tenant.post(rows)
            if answer.status == 202:
                stored.append(numbers)
            return answer

        assert write().status == 202
        fill(filler)
        refused = 0
        while refused < REFUSED:
            answer = write()
            if answer.status != 202:
                assert refusal(answer) == (503, FULL)
                refused += 1
            assert len(stored) * ROWS * 8 < 2 * LEFT_BYTES  # no column is so much shorter
        expected = [value for numbers in stored for value in numbers]
        assert [fields["n"] for _, fields in tenant.rows(fields="n")] == expected
        filler.unlink()
        until(lambda: write().status == 202)
        expected = [value for numbers in stored for value in numbers]
        assert [fields["n"] for _, fields in tenant.rows(fields="n")] == expected
        assert service.processes() == before
