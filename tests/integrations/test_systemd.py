"""The units: their exposure by systemd's own count, and the calls that the service really makes."""

import http.client
import json
import os
import re
import subprocess
import sys

import pytest

from fleetcast.bench.processes import free_port
from fleetcast.cli.main import fleetcast
from fleetcast.config import Settings
from tests.integrations.broker import Broker, Device, Storing, bridge
from tests.integrations.fronts import record
from tests.integrations.programs import Program, found, needs
from tests.service.service import UNLIMITED, prepare
from tests.service.service import command as run_command
from tests.tidy.files import ROOT
from tests.waiting import until

FOLDER = ROOT / "integrations" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
SERVICE = FOLDER / "fleetcast.service"
BRIDGE = FOLDER / "fleetcast-mqtt.service"
EXPOSURE_MAX = 1.5
# Allocators look at /proc/sys/vm/overcommit_memory, and do without it.
OF_THE_KERNEL = re.compile(
    r'"(/proc/(?:sys(?!/vm/overcommit_memory")|stat|uptime|meminfo|cpuinfo)\b[^"]*)"'
)
OF_ROOT = {"fchown"} if os.geteuid() == 0 else set()
"""Calls that SQLite makes as root alone, and so never in a unit."""
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


def traced(trace, command) -> list[str]:
    """The command under strace, which writes all calls to a file."""
    return [found("strace"), "-f", "-qq", "-o", str(trace), *command]


def has_what_it_needs(trace, unit):
    """Fails if a traced program made a call or read a file that its unit refuses."""
    text = trace.read_text(errors="replace")
    shows_all = "ProcSubset=pid" not in unit.read_text()
    assert shows_all or OF_THE_KERNEL.findall(text) == []
    made = CALL.findall(text)
    assert len({name for name, _ in made}) > 50
    assert {name for name, _ in made} - allowed(unit) - OF_ROOT == set()
    both = [text for name, text in made if "PROT_WRITE|PROT_EXEC" in text and "map" in name + text]
    assert both == []


@needs("systemd-analyze", "strace")
def test_the_service_makes_no_call_that_its_unit_refuses(tmp_path):
    data, trace, port = tmp_path / "data", tmp_path / "trace", free_port()
    key = prepare(data)
    serve = [sys.executable, "-m", "fleetcast", "serve", "--data", str(data)]
    serve += ["--http", f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{free_port()}", *UNLIMITED]
    serve += ["--admin", f"127.0.0.1:{free_port()}", "--set", "store.compact_after_seconds=1"]
    service = Program(traced(trace, serve), tmp_path / "log", port=port).start()
    try:
        use(port, key)
        run_command(data, "compact")
    finally:
        status = service.stop_child()
    assert status == 0, service.text()[-2000:]
    has_what_it_needs(trace, SERVICE)


def run_bridge(folder, wrapped) -> int:
    """Runs the bridge by the command that `wrapped` makes of its own, until all is stored."""
    service, broker = Storing(folder).start(), Broker(folder).start()
    running = bridge(folder, broker, service)
    running.command = wrapped(running.command)
    running.start()
    until(lambda: "SUBACK to bridge" in broker.text())
    device = Device(broker)
    device.publish(range(200))
    until(lambda: service.count() == 200)
    device.close()
    status = running.stop_child()
    broker.stop()
    service.running.stop()
    return status


@needs("systemd-analyze", "strace", "mosquitto")
def test_the_bridge_makes_no_call_that_its_unit_refuses(tmp_path):
    trace = tmp_path / "trace"
    assert run_bridge(tmp_path, lambda command: traced(trace, command)) == 0
    has_what_it_needs(trace, BRIDGE)


@needs("unshare", "mosquitto")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts /proc")
def test_the_bridge_runs_on_the_part_of_proc_that_its_unit_shows(tmp_path):
    assert "\nProcSubset=pid\n" in BRIDGE.read_text()
    shown = 'mount -t proc -o subset=pid proc /proc && [ ! -e /proc/sys ] && exec "$@"'
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shown, "sh"]
    assert run_bridge(tmp_path, lambda command: [*apart, *command]) == 0


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
