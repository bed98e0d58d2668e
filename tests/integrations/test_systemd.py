"""The units: their exposure by systemd's own count, and the calls that the service really makes."""

import http.client
import json
import re
import subprocess
import sys

import pytest

from fleetcast.bench.processes import free_port
from fleetcast.cli.main import fleetcast
from fleetcast.config import Settings
from tests.integrations.fronts import record
from tests.integrations.programs import Program, found, needs
from tests.service.service import UNLIMITED, prepare
from tests.service.service import command as run_command
from tests.tidy.files import ROOT

FOLDER = ROOT / "integrations" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
SERVICE = FOLDER / "fleetcast.service"
EXPOSURE_MAX = 1.5
OF_THE_KERNEL = re.compile(r'"(/proc/(?:sys|stat|uptime|meminfo|cpuinfo)\b[^"]*)"')
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)(.*)", re.MULTILINE)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_commands_of_units_are_commands_of_the_program(unit):
    (command,) = re.findall(r"ExecStart=/opt/fleetcast/bin/fleetcast (\w+)", unit.read_text())
    assert command in fleetcast.list_commands(None)


def test_the_socket_unit_has_the_addresses_of_the_settings():
    listened = re.findall(
        r"^ListenStream=(.*)", (FOLDER / "fleetcast.socket").read_text(), re.MULTILINE
    )
    assert listened == [Settings().http.address, Settings().grpc.address]


def test_a_child_that_hangs_is_replaced_before_systemd_ends_the_service():
    (minutes,) = re.findall(r"^WatchdogSec=(\d+)min$", SERVICE.read_text(), re.MULTILINE)
    assert 60 * int(minutes) > Settings().service.watchdog_seconds


@needs("systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_exposure(unit):
    command = [found("systemd-analyze"), "security", "--offline=true", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout.splitlines()[-1])
    exposure = float(re.findall(r"exposure level for \S+ ([\d.]+)", done.stdout)[0])
    assert exposure <= EXPOSURE_MAX


def calls_of(name) -> set[str]:
    """A set of systemd's with those that it names, or one call."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(
        [found("systemd-analyze"), "syscall-filter", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.strip() for line in text.splitlines()[1:] if "#" not in line and line.strip()]
    return set().union(*map(calls_of, names))


def allowed(unit) -> set[str]:
    calls = calls_of("@default")
    for line in re.findall(r"^SystemCallFilter=(.*)", unit.read_text(), re.MULTILINE):
        named = set().union(*map(calls_of, line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


@needs("systemd-analyze", "strace")
def test_the_service_makes_no_call_that_its_unit_refuses(tmp_path):
    data, trace, port = tmp_path / "data", tmp_path / "trace", free_port()
    key = prepare(data)
    serve = [sys.executable, "-m", "fleetcast", "serve", "--data", str(data)]
    serve += ["--http", f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{free_port()}", *UNLIMITED]
    serve += ["--admin", f"127.0.0.1:{free_port()}", "--set", "store.compact_after_seconds=1"]
    strace = [found("strace"), "-f", "-qq", "-o", str(trace), *serve]
    service = Program(strace, tmp_path / "log", port=port).start()
    try:
        use(port, key)
        run_command(data, "compact")
    finally:
        status = service.stop_child()
    assert status == 0, service.text()[-2000:]
    text = trace.read_text(errors="replace")
    shows_all = "ProcSubset=pid" not in SERVICE.read_text()
    assert shows_all or OF_THE_KERNEL.findall(text) == []
    made = CALL.findall(text)
    assert len({name for name, _ in made}) > 50
    assert {name for name, _ in made} - allowed(SERVICE) == set()
    both = [text for name, text in made if "PROT_WRITE|PROT_EXEC" in text and "map" in name + text]
    assert both == []


def use(port, key):
    """A write, reads, and a forecast."""
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"x-api-key": key, "content-type": "application/json"}
    rows = [record(30 * n) for n in range(18)]
    for method, path, body in (
        ("POST", "/telemetry", json.dumps(rows)),
        ("GET", "/topology?measurement=link", None),
        ("GET", "/predictions?link_ids=l1", None),
        ("GET", "/health/telemetry", None),
    ):
        wire.request(method, path, body, headers)
        answer = wire.getresponse()
        assert answer.status in {200, 202}, answer.read()
        answer.read()
    wire.close()
