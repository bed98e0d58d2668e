"""Patroni replaces primaries under load, as docs/scale-out.md sets it up, without a watchdog.

Skipped without Patroni and etcd: `PATRONI` and `ETCD` are commands, by default those of the path.
One etcd is enough here; its loss is not a fault of these tests.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Cluster, Planes
from tests.waiting import until

from .load import Load

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ["p1", "p2", "p3"]
PORT = int(os.environ.get("ENGINE_PORT", "25432")) + 100
PATRONI, ETCD = (os.environ.get(name.upper(), name) for name in ("patroni", "etcd"))
BATCHES = 50
ROUNDS = int(os.environ.get("PATRONIS", "1"))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
AS = NOBODY if os.geteuid() == 0 else []
DCS = {
    "ttl": 20,
    "loop_wait": 5,
    "retry_timeout": 5,
    "maximum_lag_on_failover": 0,
    "synchronous_mode": "quorum",
    "synchronous_mode_strict": True,
    "postgresql": {
        "use_pg_rewind": True,
        "parameters": {"synchronous_commit": "on", "wal_level": "replica"},
    },
}
rounds = pytest.mark.parametrize("number", range(ROUNDS))


def address(name: str, offset: int) -> str:
    return f"127.0.0.{NAMES.index(name) + 1}:{PORT + offset}"


def ask(name: str, method: str, path: str, body: object = None) -> dict:
    """Answer of the API of a Patroni."""
    with closing(http.client.HTTPConnection(address(name, 1), timeout=60)) as api:
        api.request(method, path, json.dumps(body))
        content = api.getresponse().read().decode()
        return json.loads(content) if content.startswith("{") else {"text": content}


def configuration(name: str, folder: Path, programs: Path) -> dict:
    """Settings of a server. `bootstrap.dcs` and `watchdog` are what the page is about."""
    host = address(name, 0).partition(":")[0]
    return {
        "scope": "fleet",
        "name": name,
        "restapi": {"listen": address(name, 1), "connect_address": address(name, 1)},
        "etcd3": {"hosts": [address(NAMES[0], 2)]},
        "bootstrap": {"dcs": DCS, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}]},
        "postgresql": {
            "listen": f"{host}:{PORT}",
            "connect_address": f"{host}:{PORT}",
            "data_dir": str(folder / name),
            "bin_dir": str(programs),
            "pgpass": str(folder / f"{name}-pass"),
            "authentication": {
                "superuser": {"username": "postgres"},
                "replication": {"username": "replicator", "password": "replicator"},
                "rewind": {"username": "postgres"},
            },
            "parameters": {"unix_socket_directories": ""},
            "pg_hba": ["host all,replication all 127.0.0.0/8 trust", "local all all trust"],
        },
        "watchdog": {"mode": "off"},
    }


@contextmanager
def etcd(folder: Path) -> Iterator[None]:
    """Keeps what the processes of Patroni agree upon."""
    clients, peers = (f"http://{address(NAMES[0], offset)}" for offset in (2, 3))
    options = {
        "--data-dir": str(folder / "etcd"),
        "--listen-client-urls": clients,
        "--advertise-client-urls": clients,
        "--listen-peer-urls": peers,
        "--initial-advertise-peer-urls": peers,
        "--initial-cluster": f"default={peers}",
    }
    command = [*AS, *shlex.split(ETCD), *itertools.chain.from_iterable(options.items())]
    with (folder / "etcd.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Patroni:
    """Three servers, each of which a process of Patroni looks after."""

    def __init__(self, folder: Path, programs: Path, left: ExitStack) -> None:
        self._folder, self._programs = folder, programs
        self._running: dict[str, subprocess.Popen] = {}
        left.enter_context(etcd(folder))
        for name in NAMES:
            config = configuration(name, folder, programs)
            (folder / f"{name}.yml").write_text(json.dumps(config))
            left.callback(self.kill, name)
            self.start(name)
        until(self.is_whole)
        self.sql("CREATE ROLE fleet LOGIN IN ROLE pg_monitor")
        self.sql("CREATE DATABASE fleet OWNER fleet")
        hosts = ",".join(address(name, 0) for name in NAMES)
        self.url = f"postgresql://fleet@{hosts}/fleet"

    def start(self, name: str) -> None:
        command = [*AS, *shlex.split(PATRONI)]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*command, str(self._folder / f"{name}.yml")],
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )

    def kill(self, name: str) -> None:
        """Kills Patroni and the server, as a machine that vanishes."""
        self.kill_manager(name)
        pids = self._folder / name / "postmaster.pid"
        if pids.exists():
            pid = int(pids.read_text().split()[0])
            children = Path(f"/proc/{pid}/task/{pid}/children")
            with suppress(FileNotFoundError, ProcessLookupError):
                for each in (pid, *map(int, children.read_text().split())):
                    os.kill(each, signal.SIGKILL)

    def kill_manager(self, name: str) -> None:
        """Kills Patroni alone: its server lives on as it is."""
        self._running[name].send_signal(signal.SIGKILL)
        self._running[name].wait()

    def members(self) -> dict[str, dict]:
        """Members by name, as the first one of which the API answers knows them."""
        for name in NAMES:
            with suppress(OSError, http.client.HTTPException):
                return {
                    member["name"]: member for member in ask(name, "GET", "/cluster")["members"]
                }
        return {}

    def leader(self) -> str | None:
        roles = {each["role"]: name for name, each in self.members().items()}
        return roles.get("leader")

    def is_whole(self) -> bool:
        """True while both standbys follow the leader closely enough to take its place."""
        states = sorted((each["role"], each["state"]) for each in self.members().values())
        standby = ("quorum_standby", "streaming")
        return states == [("leader", "running"), standby, standby]

    def switch_over(self) -> None:
        leader = self.leader()
        ask(leader, "POST", "/switchover", {"leader": leader})

    @contextmanager
    def load(self) -> Iterator[Load]:
        """Writers of three nodes, on servers that are whole before and after it."""
        until(self.is_whole)
        url = f"{self.url}?options=-csearch_path%3Dpatroni"
        clusters = [Cluster(url) for _ in NAMES]
        clusters[0].install("test", b"check")
        with Load.on([Planes.in_cluster(cluster) for cluster in clusters]).running() as load:
            load.goes_on(BATCHES)
            yield load
            until(self.is_whole)

    def sql(self, statement: str) -> None:
        host, port = address(self.leader(), 0).split(":")
        psql = [self._programs / "psql", "-qX", "-h", host, "-p", port, "-U", "postgres"]
        subprocess.run([*psql, "-c", statement], check=True)


@pytest.fixture(scope="module")
def patroni(database):
    del database
    if not all(shutil.which(shlex.split(command)[0]) for command in (PATRONI, ETCD)):
        pytest.skip("no Patroni or no etcd: pip install patroni[etcd3] psycopg[binary]")
    work = Path(os.environ["ENGINE_WORK"])
    programs = Path(f"/proc/{(work / 'n1/postmaster.pid').read_text().split()[0]}/exe").readlink()
    with tempfile.TemporaryDirectory(dir=work.parent) as folder, ExitStack() as left:
        if AS:
            shutil.chown(folder, 65534, 65534)
        yield Patroni(Path(folder), programs.parent, left)


@rounds
def test_a_switchover_loses_nothing(patroni, number):
    del number
    with patroni.load() as load:
        old = patroni.leader()
        patroni.switch_over()
        until(lambda: patroni.leader() not in (old, None))
        load.goes_on(BATCHES)
    load.assert_kept("Patroni, switchover")


@rounds
def test_a_primary_that_is_killed_is_replaced_and_comes_back(patroni, number):
    del number
    with patroni.load() as load:
        old = patroni.leader()
        patroni.kill(old)
        until(lambda: patroni.leader() not in (old, None))
        load.goes_on(BATCHES)
        patroni.start(old)
        load.goes_on(BATCHES)
    load.assert_kept("Patroni, primary killed")
