"""Telegraf with the files that come with the program."""

import json
import os
import subprocess
import time

import pytest

from fleetcast.engine import format_time
from tests.adapters.test_clients import NAMES, rows
from tests.integrations.fronts import at, replaced
from tests.integrations.programs import found, needs
from tests.service.service import prepare, start

ROWS = 3_000
BASE_S = int(time.time()) - 20_000


@pytest.fixture
def service(tmp_path):
    data = tmp_path / "data"
    key = prepare(data)
    (data / "adapters.toml").write_text(NAMES)
    started = start(data, key, "--set", f"adapters.address={at(0)}")
    started.data = data
    yield started
    started.stop()


@pytest.mark.parametrize(
    ("file", "address", "listener", "field"),
    [
        ("telegraf.conf", "127.0.0.1:8086", "adapters", "cpu_value"),
        ("http.conf", "127.0.0.1:8080", "http", "value"),
    ],
)
@needs("telegraf")
def test_what_telegraf_sends_is_read_back(service, tmp_path, file, address, listener, field):
    lines = (f"cpu,host=e{n % 10} value={n / 4} {BASE_S + n}000000000\n" for n in range(ROWS))
    (tmp_path / "lines").write_text("".join(lines))
    to = service.ready[listener].removeprefix("http://")
    source = f'[[inputs.file]]\nfiles = ["{tmp_path / "lines"}"]\ndata_format = "influx"\n'
    (tmp_path / "telegraf.conf").write_text(replaced(f"telegraf/{file}", {address: to}) + source)
    done = subprocess.run(
        [found("telegraf"), "--config", str(tmp_path / "telegraf.conf"), "--once"],
        env={**os.environ, "FLEETCAST_KEY": service.key},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stored = {(entity, at_): fields for entity, at_, fields in rows(service)}
    expected = {
        (f"e{n % 10}", format_time((BASE_S + n) * 10**9)): {field: n / 4} for n in range(ROWS)
    }
    assert stored == expected, json.dumps(done.stderr)
