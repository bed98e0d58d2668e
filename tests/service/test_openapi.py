"""The description of the public API: sound, complete, and true of a running service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from fleetcast.admin.openapi import document
from fleetcast.config.sections import Limits
from fleetcast.engine import encode_records
from fleetcast.http.routes import ROUTES
from fleetcast.surface.error_codes import ERROR_CODES
from tests.conformance.api import at, record
from tests.http.application import client

from .service import running

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def described():
    return document(Limits())


def test_it_is_openapi(described):
    assert validate(described) is None  # raises where it is none


def test_it_has_every_path_and_method(described):
    for path, route in ROUTES.items():
        methods = {method.upper() for method in described["paths"][path]}
        assert methods == set(route.allow.split(", ")), path
    assert set(described["paths"]) == set(ROUTES)


def codes(schema):
    """Error codes that a schema allows."""
    if isinstance(schema, dict):
        error = schema.get("properties", {}).get("error", {})
        yield from error.get("enum", [error["const"]] if "const" in error else [])
        for part in schema.values():
            yield from codes(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from codes(part)


def test_it_has_every_error_code_with_its_status(described):
    found = {}
    for operations in described["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                name = response.get("$ref", "").rpartition("/")[2]
                for code in codes(described["components"]["responses"].get(name, {})):
                    found.setdefault(code, set()).add(int(status))
    expected = {code: {row.http} for code, row in ERROR_CODES.items() if row.http}
    expected.pop("not_found")  # of paths that are not there
    expected.pop("schema_faults")  # answers with a list
    expected.pop("unsupported_media_type")  # of the adapter listener alone
    assert found == expected


def test_it_has_the_bounds_of_queries(described):
    reads = (described["paths"][path]["get"] for path in ("/topology", "/topology/series"))
    schemas = {each["name"]: each["schema"] for read in reads for each in read["parameters"]}
    freshness, entities_max = schemas["freshness_seconds"], schemas["entity_id"]["maxItems"]
    app = client()
    for more, status in ((0, 200), (1, 422)):
        longest = {"freshness_seconds": freshness["maximum"] + more}
        assert app.simulate_get("/topology", params=longest).status_code == status
        many = {"start": at(0), "end": at(60), "entity_id": ["e"] * (entities_max + more)}
        answer = app.simulate_get("/topology/series", params=many, params_csv=False)
        assert answer.status_code == status
    app.stores.plane().write_json(encode_records([record(at(0))]))
    for age, count in ((freshness["default"], 1), (freshness["default"] + 1, 0)):
        found = app.simulate_get("/topology", params={"as_of_utc": at(age)}).json["entities"]
        assert len(found) == count


def test_it_has_the_limits_in_force():
    record = document(Limits(tags_max=3))["components"]["schemas"]["TelemetryRecord"]
    assert record["properties"]["tags"]["maxProperties"] == 3


def test_a_service_is_as_described(tmp_path):
    """Generated requests, good and bad, under every check that schemathesis has."""
    options = ("--admin", "127.0.0.1:0", "--set", "limits.lockout_failures=0")
    with running(tmp_path / "data", *options) as service:
        command = [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(HERE / "schemathesis.toml"), "run"),
            f"{service.ready['admin']}/openapi.json",
            *("--url", service.ready["http"], "--header", f"x-api-key: {service.key}"),
            *("--checks", "all", "--phases", "examples,coverage,fuzzing"),
            *("--seed", "1", "--max-examples", "12", "--generation-database", "none"),
            *("--suppress-health-check", "all", "--warnings", "off", "--no-color"),
        ]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    short = "\n".join(line[:500] for line in run.stdout.splitlines())
    assert run.returncode == 0, f"{short}\n{run.stderr[-2000:]}"
