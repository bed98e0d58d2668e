"""The dashboard's expressions on real answers, by both implementations of JSONata."""

import json
import subprocess
from datetime import datetime, timedelta

import pytest
import yaml

from tests.integrations.fronts import record
from tests.integrations.programs import HERE, MADE, found
from tests.service.service import running
from tests.tidy.files import ROOT

FOLDER = ROOT / "integrations" / "grafana"
EVALUATORS = {"npm": [found("node"), str(MADE / "evaluate.mjs")], "go": [str(MADE / "evaluate")]}
NEEDED = {"npm": MADE / "node_modules" / "jsonata", "go": MADE / "evaluate"}
NAMES = {"measurement": "link", "entity": "l1", "channel": "snr_db", "interval": "1m"}
MINUTES = 20


def dashboard():
    return json.loads((FOLDER / "dashboards" / "fleet.json").read_text())


def targets():
    """All queries by the title of their panel, or the name of their variable."""
    document = dashboard()
    asked = [
        (panel["title"], target) for panel in document["panels"] for target in panel["targets"]
    ]
    variables = [v for v in document["templating"]["list"] if v["type"] == "query"]
    return asked + [(f"choices of {v['name']}", v["query"]["infinityQuery"]) for v in variables]


def expression(name):
    return next(target["root_selector"] for title, target in targets() if name in title)


def test_files_name_the_same_source():
    file = FOLDER / "provisioning/datasources/fleetcast.yml"
    source = yaml.safe_load(file.read_text())["datasources"][0]
    provider = yaml.safe_load((FOLDER / "provisioning/dashboards/fleetcast.yml").read_text())
    assert provider["providers"][0]["type"] == "file"
    assert source["url"] in source["jsonData"]["allowedHosts"]
    wanted = {"type": source["type"], "uid": source["uid"]}
    assert all(target["datasource"] == wanted for _, target in targets())
    assert all(panel["datasource"] == wanted for panel in dashboard()["panels"])


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("grafana") / "data", "--admin", "127.0.0.1:0") as started:
        for entity in ("l1", "l2"):
            rows = [record(60 * n - 600, entity) for n in range(MINUTES)]
            assert started.post(rows).status == 202
        yield started


def answer(service, name, **names):
    """The service's answer to a query with the variables of a dashboard in place."""
    now = datetime.now().astimezone()
    span = {"__from:date:iso": now - timedelta(hours=1), "__to:date:iso": now}
    values = {**{key: at.isoformat() for key, at in span.items()}, **NAMES, **names}
    target = next(target for title, target in targets() if name in title)
    parameters = {}
    for pair in target["url_options"]["params"]:
        value = pair["value"]
        for key, text in values.items():
            value = value.replace(f"${{{key}}}", text)
        assert "$" not in value
        parameters[pair["key"]] = value
    got = service.get(target["url"], **parameters)
    assert got.status == 200, got.body
    return got.json


def columns(name):
    target = next(target for title, target in targets() if name in title)
    return {column["selector"] for column in target["columns"]}


def evaluated(kind, name, document):
    if not (HERE and NEEDED[kind].exists()):
        pytest.skip(f"no JSONata of {kind}: make integrations installs it")
    question = json.dumps({"expression": expression(name), "input": document})
    done = subprocess.run(
        EVALUATORS[kind], input=question + "\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(columns(name) <= row.keys() for row in rows)
    return rows


def instant(text):
    return datetime.fromisoformat(text[:19] + "+00:00")


@pytest.mark.parametrize("kind", EVALUATORS)
class TestExpressions:
    def test_newest_state_is_a_row_each_entity(self, service, kind):
        document = answer(service, "Newest state")
        rows = evaluated(kind, "Newest state", document)
        assert rows == [
            {"entity": e["entity_id"], "observed_at": e["observed_at"], **e["fields"]}
            for e in document["entities"]
        ]
        assert [row["entity"] for row in rows] == ["l1", "l2"]

    @pytest.mark.parametrize("span", ["1m", "1h"])  # many rows, and one or two
    def test_a_channel_is_a_row_each_time(self, service, kind, span):
        document = answer(service, "mean between", interval=span)
        (series,) = document["series"]
        rows = evaluated(kind, "mean between", document)
        values = series["channels"]["snr_db"]
        assert rows == [
            {"time": at, "entity": "l1", "value": value}
            for at, value in zip(series["times"], values, strict=True)
        ]
        assert rows

    def test_forecasts_are_rows_at_the_time_that_they_are_for(self, service, kind):
        document = answer(service, "Forecast", entity="l2")
        items = document["items"] or FORECASTS
        rows = evaluated(kind, "Forecast", {**document, "items": items})
        for row, item in zip(rows, items, strict=True):
            ahead = timedelta(minutes=item["horizon_minutes"])
            assert instant(row["time"]) == instant(item["predicted_at"]) + ahead
            assert row["p50"] == item["value"]["snr_db_p50"]
            assert row["entity"] == item["link_id"]

    def test_usage_is_one_row(self, service, kind):
        document = answer(service, "This account")
        (row,) = evaluated(kind, "This account", document)
        assert row["accepted"] == document["usage"]["records_accepted_total"] == 2 * MINUTES

    @pytest.mark.parametrize("count", [0, 1, 2])
    def test_entities_are_choices(self, service, kind, count):
        document = answer(service, "choices of entity")
        document["entities"] = document["entities"][:count]
        rows = evaluated(kind, "choices of entity", document)
        assert rows == [{"__text": name, "__value": name} for name in ("l1", "l2")[:count]]

    def test_nothing_found_is_no_row(self, service, kind):
        document = answer(service, "Newest state", measurement="weather")
        assert evaluated(kind, "Newest state", document) == []


FORECASTS = [
    {
        "link_id": "l2",
        "horizon_minutes": minutes,
        "predicted_at": "2026-11-22T21:46:56.150847828Z",
        "value": {"snr_db_p10": 1.5, "snr_db_p50": 2.5, "snr_db_p90": 3.5},
    }
    for minutes in (5, 15, 30, 60)
]
