import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast import engine
from fleetcast.config import (
    SETTINGS_FILE,
    Override,
    Settings,
    parse_address,
    resolve,
    settings_from_json,
    settings_to_json,
)
from fleetcast.config.declarations import declarations
from fleetcast.errors import SettingsError
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.making import make_data_directory

ROOT = Path(__file__).parents[1]
OPERATIONS = ROOT / "docs" / "operations.md"


def settings(tmp_path, *assignments, environ=None):
    overrides = [Override(*text.split("=", 1), "--set") for text in assignments]
    return resolve(tmp_path, environ or {}, overrides).settings


def problems(tmp_path, *assignments, environ=None):
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, *assignments, environ=environ)
    return caught.value.problems


def test_later_sources_win_and_each_value_knows_its_own(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text(
        "[http]\nworkers = 3\nthreads = 5\n[limits]\ntags_max = 8\n"
    )
    resolved = resolve(
        tmp_path,
        {"FLEETCAST_HTTP__WORKERS": "7", "FLEETCAST_HTTP__THREADS": "6"},
        [Override("http.workers", "9", "--workers")],
    )
    rows = {name: (value, source) for name, value, source in resolved.rows()}
    assert rows["http.workers"] == (9, "--workers")
    assert rows["http.threads"] == (6, "FLEETCAST_HTTP__THREADS")
    assert rows["limits.tags_max"] == (8, str(tmp_path / SETTINGS_FILE))
    assert rows["limits.point_budget"] == (10_000, "default")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("limit.tags_max", ": did you mean limits.tags_max?"),
        ("http.worker", ": did you mean http.workers?"),
        ("nonsense.x", ""),
    ],
)
def test_a_mistyped_setting_is_answered_with_the_nearest(tmp_path, name, meant):
    assert problems(tmp_path, f"{name}=1") == [f"--set: {name} is not a setting{meant}"]


def test_every_fault_of_every_source_is_listed(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text("[http]\nworkers = true\nport = 1\n[nonsense]\nx = 1\n")
    found = problems(
        tmp_path,
        "http.workers=2",
        "http=1",
        "http.address=8080",
        environ={"FLEETCAST_LIMITS__TAGS": "1"},
    )
    names = ["http.workers", "http.port", "nonsense.x", "limits.tags", "http ", "http.address"]
    assert len(found) == len(names)
    for name, problem in zip(names, found, strict=True):
        assert name in problem


@pytest.mark.parametrize("text", ["0", "0.0", "5", "60.5", "3600"])
def test_the_watchdog_is_off_or_gives_a_child_time_for_its_signs(tmp_path, text):
    found = settings(tmp_path, f"service.watchdog_seconds={text}")
    assert found.service.watchdog_seconds == float(text)


@pytest.mark.parametrize("text", ["-1", "0.5", "4.99", "3601"])
def test_a_watchdog_that_would_kill_healthy_children_is_refused(tmp_path, text):
    """They show their life each second or two, so half a second killed them in a loop."""
    (problem,) = problems(tmp_path, f"service.watchdog_seconds={text}")
    assert "service.watchdog_seconds" in problem
    assert "must be 0, or between 5 and 3600" in problem


def test_the_backend_of_many_machines_asks_for_its_addresses(tmp_path):
    assert len(problems(tmp_path, "store.backend=postgresql")) == 2
    given = "store.database=postgresql://fleetcast:secret@a:5432,b/fleetcast"
    (wanted,) = problems(tmp_path, "store.backend=postgresql", given)
    assert "store.objects" in wanted
    resolved = resolve(
        tmp_path,
        {"FLEETCAST_STORE__OBJECTS": "s3://bucket/prefix", "FLEETCAST_STORE__DATABASE": given[15:]},
        [Override("store.backend", "postgresql", "--backend")],
    )
    assert resolved.settings.store.database == given[15:]
    assert "secret" not in str([value for _, value, _ in resolved.rows()])


def test_no_fault_of_the_database_repeats_its_password(tmp_path):
    (fault,) = problems(tmp_path, "store.database=host:secret")
    assert "secret" not in fault


def test_a_settings_file_that_is_not_toml_is_one_fault(tmp_path):
    (tmp_path / SETTINGS_FILE).write_text("[http\n")
    assert len(problems(tmp_path)) == 1


@pytest.mark.parametrize(
    "assignment",
    [
        "limits.point_budget=15",  # H25
        "store.backend=cassandra",
        "store.database=mysql://host/fleetcast",
        "store.objects=ftp://bucket",
        "store.objects=file://host/folder",
        "store.durability=never",
        'http.cors_origins=["*"]',  # K6
        'http.cors_origins=["null"]',
        'http.cors_origins=["https://*.example.com"]',
        'http.cors_origins=["https://a.example.com/"]',
        "http.cors_origins=https://a.example.com",
        'http.trusted_proxies=["proxy"]',
        "http.address=off",
        "http.address=127.0.0.1:65536",
        "http.address=::1:80",
        "http.workers=2.0",
        "http.read_deadline_seconds=inf",
        "service.environment=staging",  # J15
        "service.environment=dedicated-",
        "service.environment=dedicated-a_b",
        "ingest.mode=maybe",
        'forecast.families=["snr", "rain"]',
        "topology.simulate=1",
        "limits.body_bytes_max=33554433",
    ],
)
def test_values_out_of_range_are_refused(tmp_path, assignment):
    (problem,) = problems(tmp_path, assignment)
    assert assignment.split("=", 1)[0] in problem


@pytest.mark.parametrize(
    ("assignment", "section", "name", "value"),
    [
        ("service.environment=dedicated-acme-1", "service", "environment", "dedicated-acme-1"),
        ("service.environment='stage'", "service", "environment", "stage"),
        ("grpc.address=off", "grpc", "address", "off"),
        ("http.address=[::1]:0", "http", "address", "[::1]:0"),
        ("http.read_deadline_seconds=2", "http", "read_deadline_seconds", 2.0),
        ("forecast.families=[]", "forecast", "families", ()),
        ('http.trusted_proxies=["10.1.2.3/8"]', "http", "trusted_proxies", ("10.1.2.3/8",)),
        ("limits.requests_per_minute=0", "limits", "requests_per_minute", 0),
    ],
)
def test_values_are_read_as_toml_or_bare_words(tmp_path, assignment, section, name, value):
    assert getattr(getattr(settings(tmp_path, assignment), section), name) == value


@pytest.mark.parametrize(
    ("environment", "reflection"),
    [("sandbox", True), ("development", True), ("production", False), ("gov-development", False)],
)
def test_reflection_follows_the_environment(tmp_path, environment, reflection):  # L26
    chosen = f"service.environment={environment}"
    assert settings(tmp_path, chosen).grpc.reflection is reflection
    for said in (True, False):
        given = settings(tmp_path, chosen, f"grpc.reflection={str(said).lower()}")
        assert given.grpc.reflection is said


def test_variables_without_two_underscores_are_not_ours(tmp_path):
    environ = {"FLEETCAST_DATA": "x", "FLEETCAST_PORT": "tcp://10.0.0.1:80"}
    assert settings(tmp_path, environ=environ) == settings(tmp_path)


def test_secrets_are_masked(tmp_path):
    override = Override("security.master_key_command", "vault read -token=abc", "--set")
    text = repr(list(resolve(tmp_path, {}, [override]).rows()))
    assert "abc" not in text
    assert "********" in text


def test_two_places_for_the_master_key_are_one_too_many(tmp_path):
    found = problems(
        tmp_path, "security.master_key_file=other.key", "security.master_key_command=print-key"
    )
    assert len(found) == 1


def test_settings_survive_the_way_to_a_child(tmp_path):
    given = settings(tmp_path, 'http.cors_origins=["https://a.example.com"]', "http.threads=9")
    assert settings_from_json(settings_to_json(given)) == given


@given(st.text())
def test_addresses_read_back_as_written_or_not_at_all(text):
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(str(address)) == address


def test_the_manual_has_the_tables_of_settings_and_of_error_codes(tmp_path):
    pages = [OPERATIONS, OPERATIONS.with_name("trouble.md")]
    for page in pages:
        (tmp_path / page.name).write_text(page.read_text())
    subprocess.run([sys.executable, ROOT / "tools" / "tables", tmp_path], check=True)
    for page in pages:
        assert (tmp_path / page.name).read_text() == page.read_text(), "run tools/tables"


def test_each_line_of_a_new_settings_file_can_be_uncommented(tmp_path):
    make_data_directory(DataDirectory(tmp_path), "sandbox", {})
    file = tmp_path / SETTINGS_FILE
    text, before = file.read_text(), settings(tmp_path)
    names = re.findall(r"^# (\w+\.\w+) = ", text, re.MULTILINE)
    assert len(names) == len(list(declarations())) - 1  # the environment is set
    for name in names:
        file.write_text(text.replace(f"\n# {name} = ", f"\n{name} = "))
        resolved = resolve(tmp_path, {})
        assert resolved.settings == before
        assert resolved.origins[name] == str(file)


def test_the_readme_names_the_rate_limit_its_exemption_and_the_measurements():  # N8
    readme = (ROOT / "README.md").read_text()
    assert f"{Settings().limits.requests_per_minute} requests a minute" in readme
    assert "limits.exempt" in readme
    assert [name for name in engine.MEASUREMENTS if f"`{name}`" not in readme] == []
