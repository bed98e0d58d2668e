"""Each command with each of its inputs broken in turn: it reports that in our words.

The inputs are those of the program's own parser, so that a new command or option is tried too.
"""

from __future__ import annotations

import ctypes
import gzip
import importlib
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import click
import polars as pl
import pytest

from fleetcast.cli.main import run
from fleetcast.forecast.families import SNR
from fleetcast.forecast.onnx import shipped
from fleetcast.transfer.opening import zstd_module

FOREIGN = (
    "Error(",
    "Error:",
    "Traceback",
    "internal error",
    "invalid literal",
    "Errno",
    "codec can't",
    "<class",
    # zlib, gzip, zstd
    "Error -",
    "CRC check",
    "end-of-stream",
    "gzipped file",
    "zstd",
    "Zstandard",
    # polars
    "ComputeError",
    "InvalidOperationError",
    "SchemaError",
    " parquet:",
    "os error",
    "panicked",
    "utf-8",
    # LMDB, SQLite, PostgreSQL
    "mdb_",
    "MDB_",
    "sqlite3",
    "not a database",
    "psycopg",
    "pg8000",
    # TOML, CSV, PEM, models
    "(at line",
    "at end of document",
    "malformed",
    "field limit",
    "could not convert",
    "PEM file",
    "ONNXRuntime",
)
TEXTS = (
    "",
    " ",
    "\udcff",
    "é\n\x1b[2J",
    "-1",
    "1e400",
    "2026-99-99",
    "x" * 5_000,
    "=",
    "/proc/version",
)
SPAN = {"start": "2026-01-01", "end": "2026-01-02"}
RECORD = {
    "measurement": "link",
    "time": "2026-01-01T00:00:00Z",
    "tags": {"entity_id": "a"},
    "fields": {"snr_db": 1.5},
}
ROWS = {"t": ["2026-01-01T00:00:00Z"] * 9, "id": ["a"] * 9, "snr_db": [1.5] * 9}
COLUMNS = {"time_column": "t", "entity_column": "id", "measurement": "link"}
BRIDGE = """
[broker]
url = "mqtt://127.0.0.1:1"
client_id = "bridge"
[service]
url = "http://127.0.0.1:1"
key_file = "key"
[spool]
folder = "spool"
[[topic]]
template = "fleet/{entity_id}/link"
measurement = "link"
"""
SATELLITE = """ISS (ZARYA)
1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927
2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537
"""

VALID = {
    "backup": {"folder": "saved"},
    "compact": {"names": "acme"},
    "completion": {"shell": "bash"},
    "config check": {"assignments": "http.workers=1"},
    "config print": {"assignments": "http.workers=1"},
    "delete": {"tenant": "acme", "entities": "a", **SPAN, "yes": True},
    "describe": {"tenant": "acme", "measurement": "link", "entity": "a"},
    "doctor": {},
    "export": {"file": "out.csv", "tenant": "acme", "form": "csv", **SPAN},
    "forecast backtest": {
        "name": "snr",
        "source": "rows.csv",
        **SPAN,
        "every": "60m",
        "output": "out.parquet",
        "elements": "satellites.txt",
    },
    "forecast release list": {},
    "forecast release promote": {"family": "snr", "model": "model.onnx", "percent": "5"},
    "forecast release rollback": {"family": "snr"},
    "forecast risk": {"name": "snr", "source": "rows.csv", "at_ns": "2026-01-02", "low": "9"},
    "import": {"files": "rows.csv", "tenant": "acme", "form": "csv", **COLUMNS, "time_unit": "s"},
    "init": {"key_file": "master.key"},
    "key create": {"tenant": "acme", "scopes": "topology:read", "expires": "1d"},
    "key list": {"tenant": "acme"},
    "key revoke": {"key_id": "0" * 16},
    "key rotate": {"key_id": "0" * 16, "overlap": "1d"},
    "master-key rotate": {"file": "other.key"},
    "mqtt": {"file": "bridge.toml", "check": True},
    "operator list": {},
    "operator revoke": {"token_id": "0" * 16},
    "operator sessions": {"end": "0" * 16},
    "operator token": {"name": "me", "expires": "1d"},
    "provision": {"file": "fleet.toml"},
    "restore": {"folder": "backup", "tenant": "acme", "new_name": "twin", "key_file": "master.key"},
    "stats": {},
    "status": {},
    "tenant create": {"name": "other", "retention": "1d"},
    "tenant delete": {"name": "acme", "yes": True},
    "tenant disable": {"name": "acme"},
    "tenant enable": {"name": "acme"},
    "tenant list": {},
    "tenant receipt": {"file": "receipt.json"},
    "tenant rekey": {"name": "acme"},
    "tenant set": {"name": "acme", "retention": "1d"},
    "tenant show": {"name": "acme"},
    "tls renew": {"hosts": "localhost"},
    "verify": {"names": "acme", "backup": "backup", "master_key": "master.key"},
}
MORE = {
    "import": [
        {"files": "rows.parquet", "tenant": "acme", "form": "parquet", **COLUMNS},
        {"files": "rows.jsonl", "tenant": "acme", "form": "jsonl", "rejects": "no", "resume": "r"},
        {"files": "rows.jsonl.gz", "tenant": "acme", "form": "jsonl"},
        {"files": "rows.jsonl.zst", "tenant": "acme", "form": "jsonl"},
        {"files": "rows.csv.gz", "tenant": "acme", "form": "csv", **COLUMNS},
        {"files": "rows.parquet.zst", "tenant": "acme", "form": "parquet", **COLUMNS},
    ],
    "export": [
        {"file": "out.parquet", "tenant": "acme", "form": "parquet", **SPAN},
        {"file": "out.jsonl", "tenant": "acme", "form": "jsonl", **SPAN},
        {"file": "out.csv", "tenant": "acme", "form": "csv", **SPAN, "hours": True},
    ],
    "forecast backtest": [
        {**VALID["forecast backtest"], "source": "rows.parquet"},
        {**VALID["forecast backtest"], "source": "rows.csv.gz", "elements": "satellites.txt.gz"},
    ],
}
"""Other ways to call a command, with inputs of other formats."""
PARTS = ("fleetcast.toml", "master.key", "control/data.mdb", "planes", "tls/server.pem")
"""Files and folders of the data directory."""
LONG = {"bench", "demo", "forecast train", "serve"}
"""They run for minutes or until they are ended; `config check` takes the settings of `serve`."""


def commands():
    group = importlib.import_module("fleetcast.cli.main").fleetcast
    context = click.Context(group)

    def below(command, path):
        if not isinstance(command, click.Group):
            yield " ".join(path), command
            return
        for name in command.list_commands(context):
            yield from below(command.get_command(context, name), (*path, name))

    return dict(below(group, ()))


COMMANDS = commands()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a data directory and all files that commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    data = ["--data", str(folder / "data")]
    assert run(["init", *data]) == 0
    assert run(["tenant", "create", "acme", *data]) == 0
    (folder / "rows.jsonl").write_text((json.dumps(RECORD) + "\n") * 9)
    written = ["--tenant", "acme", "--format", "jsonl", str(folder / "rows.jsonl")]
    assert run(["import", *written, *data]) == 0
    assert run(["backup", str(folder / "backup"), *data]) == 0
    (folder / "receipt.json").write_text('{"receipt": {"tenant": "other"}, "signature": "00"}')
    shutil.copy(folder / "data" / "master.key", folder / "master.key")
    frame = pl.DataFrame(ROWS)
    frame.write_csv(folder / "rows.csv")
    frame.write_parquet(folder / "rows.parquet")
    (folder / "model.onnx").write_bytes(shipped(SNR))
    (folder / "fleet.toml").write_text('[[tenant]]\nname = "other"\n')
    (folder / "bridge.toml").write_text(BRIDGE)
    (folder / "key").write_text("ftk_x\n")
    (folder / "satellites.txt").write_text(SATELLITE)
    for name in ("rows.jsonl", "rows.csv", "satellites.txt"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    for name in ("rows.jsonl", "rows.parquet"):
        packed = zstd_module().compress((folder / name).read_bytes())
        (folder / f"{name}.zst").write_bytes(packed)
    return folder


@pytest.fixture
def world(template, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("FLEETCAST_")]:
        monkeypatch.delenv(name)
    shutil.copytree(template, tmp_path / "world")
    monkeypatch.chdir(tmp_path / "world")
    with bound_by_modes():
        yield tmp_path / "world"
        for path in (tmp_path / "world").rglob("*"):  # so that it can be removed
            if not path.is_symlink():
                path.chmod(0o700)


@contextmanager
def bound_by_modes():
    """Takes the rights off this thread by which root opens files whatever their mode is."""
    library = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(0x2008_0522, 0)
    before, bound = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert library.capget(head, before) == 0
    assert library.capget(head, bound) == 0
    bound[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, see capabilities(7)
    assert library.capset(head, bound) == 0
    try:
        yield
    finally:
        assert library.capset(head, before) == 0


def line_of(command, values):
    """Arguments of a command by the names of its parameters."""
    line, last = [], []
    for parameter in command.params:
        value = values.get(parameter.name)
        if value is None:
            continue
        if isinstance(parameter, click.Argument):
            last.append(str(value))
        else:
            line += [parameter.opts[0]] if value is True else [parameter.opts[0], str(value)]
    return [*line, "--", *last]


def _with_another_byte(whole, at):
    return whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] if 0 <= at < len(whole) else b""


def broken_files(path):
    """Puts other content or rights in the place of `path`, and says which."""
    kept = path.with_name("kept")
    exists = path.exists()
    if exists:
        path.rename(kept)

    def put(content):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

    whole = kept.read_bytes() if exists and kept.is_file() else b'{"a": [1, 2'
    for how, content in {
        "missing": None,
        "empty": b"",
        "cut short": whole[: len(whole) // 2],
        "one byte short": whole[:-1],
        "another byte near the beginning": _with_another_byte(whole, 17),
        "another byte in the middle": _with_another_byte(whole, len(whole) // 2),
        "another byte near the end": _with_another_byte(whole, len(whole) - 7),
        "wrong encoding": "é".encode("latin-1") * 9 + whole.replace(b"a", b"\xff\xfe"),
        "zeros": bytes(4_096),
        "JSON of something else": b'{"version": 1, "tenants": 1, "report": []}',
    }.items():
        put(content)
        yield how
    put(None)
    path.mkdir()
    yield "a folder"
    for mode, how in ((0o000, "no permission"), (0o444, "read-only")):
        put(None)
        if exists:
            shutil.copytree(kept, path) if kept.is_dir() else shutil.copy(kept, path)
        else:
            put(whole)
        path.chmod(mode)
        yield how
        path.chmod(0o700)
    put(None)
    if exists:
        kept.rename(path)


def broken(values, parameter):
    """Values with one of them broken, and how."""
    for text in TEXTS:
        yield {**values, parameter.name: text}, repr(text[:20])
    if isinstance(parameter.type, click.Path) or parameter.name in {"file", "files"}:
        name = values.get(parameter.name, "other")
        for how in broken_files(Path(name)):
            yield {**values, parameter.name: name}, how


def faults(capfd, name, values):
    """Runs that end with another status, say nothing, or use words of a library."""
    command = COMMANDS[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.is_flag:
            continue
        for changed, how in broken({"data": "data", **values}, parameter):
            capfd.readouterr()
            status = run([*name.split(), *line_of(command, changed)])
            out, err = capfd.readouterr()
            said = [word for word in FOREIGN if word in out + err]
            if said or status not in {0, 1, 2} or not (status == 0 or out or err):
                yield f"{parameter.name} {how}: {status}, {out + err!a}"


def test_each_command_is_tried():
    assert set(COMMANDS) == set(VALID) | LONG


@pytest.mark.parametrize("name", VALID)
def test_what_is_broken_is_reported_in_our_words(world, capfd, name):
    assert world.is_dir()
    ways = [VALID[name], *MORE.get(name, [])]
    assert [fault for way in ways for fault in faults(capfd, name, way)] == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("key", b"ftk_\xff", "key: byte 4 is no UTF-8"),
        ("spool/spool.sqlite", b"x" * 8_192, "spool.sqlite: is damaged, or no spool"),
        ("spool/spool.sqlite", None, "spool.sqlite: cannot be opened"),
    ],
)
def test_a_broken_file_of_the_bridge_is_reported_in_our_words(world, capfd, name, content, said):
    (world / "spool").mkdir()
    if content is None:
        (world / name).mkdir()
    else:
        (world / name).write_bytes(content)
    capfd.readouterr()
    assert run(["mqtt", "bridge.toml"]) == 1
    out, err = capfd.readouterr()
    assert said in err
    assert [word for word in FOREIGN if word in out + err] == []


@pytest.mark.parametrize("name", ["stats", "verify", "doctor", "describe", "tenant list", "export"])
@pytest.mark.parametrize("part", PARTS)
def test_a_broken_part_of_the_data_directory_is_reported_in_our_words(world, capfd, name, part):
    command, found = COMMANDS[name], []
    for how in broken_files(world / "data" / part):
        capfd.readouterr()
        status = run([*name.split(), *line_of(command, {**VALID[name], "data": "data"})])
        out, err = capfd.readouterr()
        if any(word in out + err for word in FOREIGN) or status not in {0, 1, 2}:
            found.append(f"{how}: {status}, {out + err!a}")
    assert found == []
