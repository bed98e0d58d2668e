"""Clients as they are published, each a process that writes rows which are read back by value.

`make adapters` installs them and runs this; elsewhere there is nothing to run it with.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fleetcast.engine import format_time
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from tests.service.service import prepare, start
from tests.waiting import until

CLIENTS = Path(__file__).parent / "clients"
PYTHON = os.environ.get("ADAPTER_CLIENTS", "")
PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
TELEGRAF = os.environ.get("TELEGRAF") or shutil.which("telegraf")
ROWS = 10_000
BACK_SECONDS = 20_000
NAMES = """
[[map]]
from = "cpu"
to = "telemetry"
prefix = "cpu_"
entity = "host"

[[map]]
from = "*"
to = "telemetry"
entity = "host"
"""

needs_clients = pytest.mark.skipif(not PYTHON, reason="no ADAPTER_CLIENTS: run make adapters")


@pytest.fixture
def service(tmp_path):
    data = tmp_path / "data"
    key = prepare(data)
    (data / "adapters.toml").write_text(NAMES)
    started = start(data, key, "--set", "adapters.address=127.0.0.1:0")
    started.data = data
    yield started
    started.stop()


def rows(service):
    """Entity, time and fields of all rows of `telemetry`."""
    found = []
    with opened(DataDirectory(service.data), os.environ) as installation:
        (tenant,) = installation.tenants.all()
        plane = installation.engine.plane(tenant.account_id, tenant.name)
        for batch in plane.scan(0, 2**63 - 1, measurements=["telemetry"]):
            while lines := batch.json_lines():
                found += [json.loads(line) for line in lines.splitlines()]
    return [(row["tags"].get("entity_id"), row["time"], row["fields"]) for row in found]


def run_client(service, name, base_s):
    command = [PYTHON, str(CLIENTS / name), service.ready["adapters"], service.key]
    done = subprocess.run(
        [*command, str(base_s), str(ROWS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def expected(base_s):
    return {
        (f"e{n % 10}", format_time((base_s + n) * 10**9)): {"cpu_value": n / 4} for n in range(ROWS)
    }


@needs_clients
@pytest.mark.parametrize("client", ["influxdb2.py", "influxdb3.py", "quest.py", "chunked.py"])
def test_rows_of_line_protocol_are_read_back(service, client):
    base_s = int(time.time()) - BACK_SECONDS
    run_client(service, client, base_s)
    found = {(entity, at): fields for entity, at, fields in rows(service) if entity != "last"}
    assert found == expected(base_s)


@needs_clients
def test_data_points_of_the_sdk_are_read_back(service):
    run_client(service, "telemetry.py", 0)
    found = [(entity, fields["value"]) for entity, _, fields in rows(service)]
    assert sorted(found) == sorted((f"e{n % 1000}", n / 4) for n in range(ROWS))


class Exposition(BaseHTTPRequestHandler):
    """A thousand metrics; the values of each scrape are those after the values of the last."""

    scrapes = 0
    series = 1000

    def do_GET(self):
        first = Exposition.scrapes * self.series
        Exposition.scrapes += 1
        lines = (f'value{{host="e{n}"}} {(first + n) / 4}\n' for n in range(self.series))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write("".join(lines).encode())

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def exposed():
    Exposition.scrapes = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Exposition) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def prometheus_settings(service, port):
    return {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "test", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ],
        "remote_write": [
            {
                "url": f"{service.ready['adapters']}/api/v1/write",
                "authorization": {"credentials": service.key},
                "queue_config": {"batch_send_deadline": "1s"},
            }
        ],
    }


@pytest.mark.skipif(PROMETHEUS is None, reason="no prometheus here, nor in PROMETHEUS")
def test_samples_of_prometheus_are_read_back(service, exposed, tmp_path):
    file = tmp_path / "prometheus.yml"
    file.write_text(json.dumps(prometheus_settings(service, exposed)))  # which is YAML as well
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [PROMETHEUS, f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'prom'}"]
    with (tmp_path / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )
    try:
        until(lambda: Exposition.scrapes > ROWS // Exposition.series)
        wanted = {(f"e{n % 1000}", n / 4) for n in range(ROWS)}

        def stored():
            values = [(e, fields["value"]) for e, _, fields in rows(service) if "value" in fields]
            return wanted <= set(values)

        assert until(stored), (tmp_path / "prometheus.log").read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(60)
    assert "non-recoverable" not in (tmp_path / "prometheus.log").read_text()


@pytest.mark.skipif(TELEGRAF is None, reason="no telegraf here, nor in TELEGRAF")
@pytest.mark.parametrize("version", [1, 2])
def test_lines_of_telegraf_are_read_back(service, tmp_path, version):
    base_s = int(time.time()) - BACK_SECONDS
    lines = (f"cpu,host=e{n % 10} value={n / 4} {base_s + n}000000000\n" for n in range(ROWS))
    (tmp_path / "lines").write_text("".join(lines))
    address = service.ready["adapters"]
    output = {
        1: f'[[outputs.influxdb]]\nurls = ["{address}"]\ndatabase = "any"\n'
        f'skip_database_creation = true\nusername = "any"\npassword = "{service.key}"\n',
        2: f'[[outputs.influxdb_v2]]\nurls = ["{address}"]\ntoken = "{service.key}"\n'
        'organization = "any"\nbucket = "any"\n',
    }[version]
    (tmp_path / "telegraf.conf").write_text(
        "[agent]\nomit_hostname = true\nmetric_buffer_limit = 20000\n"
        f'[[inputs.file]]\nfiles = ["{tmp_path / "lines"}"]\ndata_format = "influx"\n{output}'
    )
    done = subprocess.run(
        [TELEGRAF, "--config", str(tmp_path / "telegraf.conf"), "--once"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {(entity, at): fields for entity, at, fields in rows(service)}
    assert found == expected(base_s)
