"""Answers of each view: the figures of the stores and the counters, in pages of bounded length."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from fleetcast.console.views.entities import ENTITIES_MAX
from fleetcast.console.views.tables import ROWS_MAX
from fleetcast.engine import encode_records
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.surface.error_codes import ERROR_CODES
from fleetcast.surface.troubles import EXPLANATIONS
from tests.service.service import command
from tests.waiting import until

from .fleet import load

COUNT = 1_200
SEVENTEEN = json.dumps([str(number) for number in range(17)]).replace(" ", "")


def record(entity, minutes, now=None, **fields):
    """A row so long ago; the second in which the test runs unless told otherwise."""
    now = now or datetime.now(UTC).replace(microsecond=0)
    return {
        "measurement": "link",
        "time": (now - timedelta(minutes=minutes)).isoformat(),
        "tags": {"entity_id": entity, "site": f"<b>{entity}</b>"},
        "fields": fields,
    }


@pytest.fixture(scope="module", autouse=True)
def rows(place):
    service, data = place
    now = datetime.now(UTC).replace(microsecond=0)
    many = [record(f"ut-{number:04}", 5, now, x=float(number)) for number in range(COUNT)]
    load(data, "acme", iter(many))
    for name in ("buoys", "tugs", "wide"):
        command(data, "tenant", "create", name)
    sent = [record("a", 30, now, x=1.0, on=True, note="words"), record("a", 29.9, now, x=5.0)]
    late = {**record("a", 0, x=1.0), "time": "1999-01-01T00:00:00Z"}
    assert service.post([*sent, record("a", 2, now, x=3.0), late]).status == 202
    assert service.post(b"[").status == 422


def test_tenants_have_what_the_stores_and_the_counters_say(operator):
    def acme():
        """The tenant, once a rate is known and its store was read after all was written."""
        answer = operator.read("tenants?search=acme")
        (row,) = answer["rows"]
        return answer["rate_seconds"] and row["rows"] == COUNT + 3 and row

    row = until(acme)
    assert (row["tenant"], row["status"], row["readable"]) == ("acme", "active", True)
    assert (row["rejected"], row["series"]) == (1, COUNT + 1)
    assert row["bytes"] > 0
    assert row["rate"] >= 0
    # C30: stored, and no read shows it.
    assert row["unreadable"] == 0
    assert operator.service.post([{**record("a", 1, x=3.0), "tags": {}}]).status == 202
    until(lambda: operator.read("tenants?search=acme")["rows"][0]["unreadable"] == 1)
    # The rate is of the last moments: what comes now is in it.
    assert operator.service.post([record("a", 1, x=3.0)] * 500).status == 202
    until(lambda: operator.read("tenants?sort=-rate")["rows"][0]["rate"] > 1)


def test_the_overview_sums_up_tenants_refusals_disk_and_findings(operator):
    def rows():
        return {of["tenant"]: of["rows"] for of in operator.read("overview")["largest"]}

    until(lambda: rows().get("acme", 0) >= COUNT)
    answer = operator.read("overview")
    assert answer["tenants"] >= 4
    assert "schema_faults" in {of["code"] for of in answer["refusals"]}
    assert 0 < answer["disk"]["free_bytes"] <= answer["disk"]["total_bytes"]
    assert answer["disk"]["bytes_per_day"] > 0
    findings = until(lambda: operator.read("overview")["findings"])
    assert len(findings) > 3
    assert all(set(of) == {"check", "ok", "detail", "advice"} for of in findings)


def test_tenants_are_searched_ordered_and_cut(operator):
    assert [row["tenant"] for row in operator.read("tenants?search=U")["rows"]] == ["buoys", "tugs"]
    named = [row["tenant"] for row in operator.read("tenants?sort=-tenant&first=1&limit=1")["rows"]]
    assert named == ["tugs"]
    until(lambda: operator.read("tenants?sort=-rows")["rows"][0]["tenant"] == "acme")
    assert operator.read(f"tenants?limit={ROWS_MAX}")["total"] == 4


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"tenants?limit={ROWS_MAX + 1}", "limit"),
        ("tenants?limit=-1", "limit"),
        ("tenants?first=9999999999", "first"),
        ("tenants?sort=secret", "sort"),
        (f"tenants/acme/entities?limit={ENTITIES_MAX + 1}", "limit"),
        ("tenants/acme/entities?search=%00", "search"),
        ("tenants/acme/entities?search=%ff", "query"),
        ("tenants/acme/entities?" + "&".join(f"a{n}=1" for n in range(40)), "query"),
        (f"tenants/acme/entities?search={'x' * 5000}", "search"),
        ("tenants/acme/entities?sort=age", "sort"),
        ("tenants/acme/entities?sort=field:", "sort"),
        ("tenants/acme/entities?tag=north", "tag"),
        ("tenants/acme/entities?field=x&least=low", "least"),
        ("tenants/acme/points?field=x&most=nan", "most"),
        ("tenants/acme/channels?entity_id=a", "measurement"),
        (f"tenants/acme/channels?entity_id=a&measurement=link&fields={SEVENTEEN}", "fields"),
        (f"tenants/acme/channels?entity_id=a&measurement=link&more={SEVENTEEN}", "more"),
        ("tenants/acme/channels?entity_id=a&measurement=link&more=b", "more"),
        ("tenants/acme/channels?entity_id=a&measurement=link&more=[1]", "more"),
        (f"tenants/acme/channels?entity_id=a&measurement=link&more={4000 * '['}", "more"),
        ("tenants/acme/channels?entity_id=a&measurement=link&end=noon", "end"),
        ("tenants/acme/forecasts?family=rain&entity_id=a", "family"),
        ("tenants/acme/forecasts?entity_id=a&horizon=7", "horizon"),
        ("tenants/acme/backtests?family=rain", "family"),
    ],
)
def test_a_bad_parameter_is_named(operator, path, field):
    answer = operator.ask(f"api/{path}")
    assert (answer.status, answer.json["error"], answer.json["field"]) == (
        400,
        "invalid_input",
        field,
    )
    assert answer.json["message"].endswith(".")


def test_each_refusal_has_a_reason_and_each_tenant_its_rejected_records(operator):
    assert EXPLANATIONS.keys() == ERROR_CODES.keys()

    def acme():
        answer = operator.read("refusals")
        rejected = {row["tenant"]: row["total"] for row in answer["rejected"]}
        reasons = {row["code"]: row["reason"] for row in answer["codes"]}
        return rejected.get("acme") == 1 and reasons.get("schema_faults")

    assert until(acme).startswith("The JSON is not an array of records.")


def test_entities_come_in_pages_in_order(operator):
    first = operator.read("tenants/acme/entities?limit=500")
    assert first["measurements"] == {"link": COUNT + 1}
    assert first["total"] == COUNT + 1
    pages = [operator.read(f"tenants/acme/entities?limit=500&first={at}") for at in (0, 500, 1000)]
    ids = [entity["entity_id"] for page in pages for entity in page["entities"]]
    assert ids == ["a", *(f"ut-{number:04}" for number in range(COUNT))]


def test_an_entity_has_its_newest_state_as_it_was_written(operator):
    (entity,) = operator.read("tenants/acme/entities?search=UT-0007")["entities"]
    assert entity["fields"] == {"x": 7.0}
    assert entity["tags"]["site"] == "<b>ut-0007</b>"
    assert operator.read("tenants/acme/entities?search=nobody")["total"] == 0
    assert operator.read("tenants/acme/entities?measurement=rain")["entities"] == []
    assert operator.read("tenants/buoys/entities")["total"] == 0


def test_an_entity_is_found_by_its_whole_id_however_many_ids_hold_it(operator):
    page = operator.read("tenants/acme/entities?entity_id=ut-0007&limit=1")
    assert [entity["entity_id"] for entity in page["entities"]] == ["ut-0007"]
    assert page["total"] == 1
    assert operator.read("tenants/acme/entities?entity_id=ut-000")["total"] == 0


def test_entities_are_filtered_and_sorted_by_their_newest_sample(operator):
    def ids(query):
        answer = operator.read(f"tenants/acme/entities?limit=3&{query}")
        return answer["total"], [entity["entity_id"] for entity in answer["entities"]]

    assert ids("sort=-field:x") == (COUNT + 1, ["ut-1199", "ut-1198", "ut-1197"])
    assert ids("sort=field:x&field=x&least=1100.5") == (99, ["ut-1101", "ut-1102", "ut-1103"])
    assert ids("tag=site=<b>ut-0007</b>") == (1, ["ut-0007"])
    assert ids("sort=-time")[1][0] == "a"
    assert ids("silent=86400") == (0, [])
    points = operator.read("tenants/acme/points?show=x&search=ut-0007")
    ((measurement, name, _, lat, lon, shown),) = points["points"]
    assert (measurement, name, lat, lon, shown) == ("link", "ut-0007", None, None, 7.0)
    assert points["total"] == 1


@pytest.mark.parametrize("end", ["1677-09-21T00:12:43.145224193Z", "1677-10-01", "1970-01-01"])
def test_channels_of_a_window_at_the_beginning_of_time_are_beyond_the_horizon(operator, end):
    path = f"tenants/acme/channels?measurement=link&entity_id=a&seconds=31536000&end={end}"
    answer = operator.ask(f"api/{path}")
    assert (answer.status, answer.json["error"]) == (422, "history_horizon_exceeded")


def test_channels_have_the_mean_between_minimum_and_maximum(operator):
    path = "tenants/acme/channels?measurement=link&entity_id=a&seconds=3600"
    answer = operator.read(path)
    series = {of: answer[of]["series"][0] for of in ("mean", "min", "max")}
    assert series["mean"]["channels"].keys() == {"x"}  # neither the flag nor the text
    assert len({tuple(each["times"]) for each in series.values()}) == 1
    low, mean, high = (series[of]["channels"]["x"] for of in ("min", "mean", "max"))
    assert all(a <= b <= c for a, b, c in zip(low, mean, high, strict=True))
    assert (min(low), max(high)) == (1.0, 5.0)
    assert operator.read(f'{path}&fields=["x"]')["mean"]["interval"] == "15s"
    assert answer["names"] == ["x"]
    assert answer["end"] - answer["start"] == 3600
    (rows,) = operator.read(f"{path}&raw=1")["raw"]["series"]
    assert rows["channels"]["x"][:3] == [1.0, 5.0, 3.0]
    week = operator.read(path.replace("3600", "604800"))
    assert week["mean"]["interval"] == "15m"
    nobody = operator.read(path.replace("entity_id=a", "entity_id=nobody"))
    assert nobody["mean"]["series"][0]["times"] == []


def test_channels_of_several_entities_come_together(operator):
    path = 'tenants/acme/channels?measurement=link&entity_id=a&more=["ut-0007"]&seconds=3600'
    answer = operator.read(path)
    assert [each["entity_id"] for each in answer["mean"]["series"]] == ["a", "ut-0007"]
    assert answer["names"] == ["x"]


def test_h20_a_window_beyond_the_horizon_is_refused_as_the_series_endpoint_does_it(operator):
    path = "tenants/acme/channels?measurement=link&entity_id=a&seconds=31536000"
    answer = operator.ask(f"api/{path}")
    assert (answer.status, answer.json["error"]) == (422, "history_horizon_exceeded")


def test_an_unknown_tenant_is_named_so(operator):
    for name in ("nobody", "x" * 64, "%00", "..", ""):
        answer = operator.ask(f"api/tenants/{name}/entities")
        assert answer.status == 404


def test_storage_has_log_and_segments_of_each_store(operator):
    # A store that cannot be read at a moment is left out, so both are looked at in one answer.
    answer = until(lambda: (of := operator.read("storage?search=acme"))["sums"]["log"] and of)
    acme = answer["rows"][0]
    assert acme["bytes"] == acme["log_file_bytes"] + acme["segments"] + acme["names"] + acme["free"]
    # "failed" counts tries of all stores; the stores that other tests break and delete are in it.
    assert answer["compaction"]["failing"] == 0
    due = operator.read("tenants/acme/upcoming")
    assert due["log_bytes_due"] > 0
    assert due["log_due"] - due["log_since"] == 3600


def test_processes_are_those_of_the_service(operator):
    answer = operator.read("processes")
    assert answer["ready"] is True
    assert set(answer["checks"]) >= {"http", "timeseries_store", "upkeep"}
    names = {of["pid"]: of["name"] for of in answer["processes"]}
    assert names[operator.service.process.pid] == "supervisor"
    assert set(names.values()) >= {"http", "maintenance", "admin"}
    assert set(operator.service.processes()) >= set(names)
    assert all(of["memory_bytes"] > 0 for of in answer["processes"])


def test_refusals_are_counted_by_code(operator):
    def count():
        codes = operator.read("refusals")["codes"]
        return {(of["surface"], of["code"]): of for of in codes}

    before = count()["http", "schema_faults"]
    assert before["status"] == 422
    assert operator.service.post(b"[").status == 422
    after = count()["http", "schema_faults"]
    assert after["total"] == before["total"] + 1
    # Those of before may have left the minute meanwhile, this one has not.
    assert 1 <= after["minute"] <= after["quarter"] <= after["total"]


def test_the_console_changes_nothing_of_a_tenant(operator):
    """Each view once, and the store is as it was, to the byte."""

    def content():
        planes = DataDirectory(operator.data).planes
        parts = [path for path in planes.rglob("*") if path.is_file() and "lock" not in path.name]
        return {path: path.read_bytes() for path in parts}

    before = content()
    for path in (
        *("overview", "tenants", "storage", "processes", "refusals", "tenants/acme/entities"),
        "tenants/acme/channels?measurement=link&entity_id=a",
        "tenants/acme/upcoming",
        "tenants/acme/api/v1/query?query=x",
    ):
        operator.read(path)
    operator.ask("api/tenants/acme/forecasts?entity_id=a")
    assert content() == before


def test_a_wide_record_does_not_make_a_page_long(operator, place):
    wide = {f"field_{number:04}": 0.123456789 for number in range(4_000)}
    records = [record(f"wide-{number:03}", 1, **wide) for number in range(60)]
    with opened(DataDirectory(place[1]), os.environ) as installation:
        account = installation.tenants.get("wide").account_id
        installation.engine.plane(account, "wide").write_json(
            encode_records(records), fields_max=4_096
        )
    answer = operator.ask("api/tenants/wide/entities?limit=500")
    page = json.loads(answer.body)
    assert len(answer.body) < 3 << 20
    assert 1 <= len(page["entities"]) < 60
    assert page["total"] == 60
    channels = operator.read("tenants/wide/channels?measurement=link&entity_id=wide-001")
    assert len(channels["mean"]["series"][0]["channels"]) == 16


def test_forecasts_are_beside_what_was_measured(operator):
    pytest.importorskip("onnxruntime")
    now = datetime.now(UTC)  # the newest row must be of the last minutes
    signal = [
        record("pass", minute, now, snr_db=10.0, elevation_deg=45.0, slant_range_km=750.0)
        for minute in range(400, 0, -1)
        if not 60 <= minute < 90
    ]
    load(operator.data, "tugs", iter(signal))
    answer = operator.read("tenants/tugs/forecasts?family=snr&entity_id=pass&horizon=15")
    assert answer["quantile_names"] == ["p10", "p50", "p90"]
    assert len(answer["times"]) == 180 + 15 + 1
    assert {b - a for a, b in zip(answer["times"], answer["times"][1:], strict=False)} == {60}
    low, middle, high = answer["quantiles"]
    told = [row for row in zip(low, middle, high, strict=True) if None not in row]
    assert all(a <= b <= c for a, b, c in told)
    # Neither is made up where there were no rows, and what is to come was not measured.
    assert answer["observed"][-15:] == [None] * 15
    missing = answer["observed"].index(None)
    assert answer["observed"][missing : missing + 29] == [None] * 29
    assert middle.count(None) >= 15
    assert middle[-1] is not None
    nobody = operator.read("tenants/tugs/forecasts?family=demand&entity_id=nobody")
    assert set(nobody["observed"]) == {None}
    assert nobody["error"] == "no_telemetry"
