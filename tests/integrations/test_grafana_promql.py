"""Dashboards that ask in Prometheus' language, each question put to a running service."""

from __future__ import annotations

import importlib
import json
import re
from datetime import UTC, datetime

import pytest
import yaml

from fleetcast.cli.demo.fleet import LINKS, POOLS, SILENT_LINK, generated_fleet
from fleetcast.metrics.families import FAMILIES
from tests.integrations.programs import HERE, MADE
from tests.integrations.promql.servers import LISTENER, Server
from tests.integrations.test_alerts import METRIC, names_of
from tests.service.service import running
from tests.tidy.files import ROOT

FOLDER = ROOT / "integrations" / "grafana"
DASHBOARDS = {path.stem: path for path in (FOLDER / "dashboards").glob("*.json")}
OF_TENANTS = ("channels", "link", "pool")
SDK = MADE / "grafana"
BATCH_RECORDS = 1_000
CHOICES = re.compile(r"label_values\((?:(.+), )?(\w+)\)")
NAMES = {
    "measurement": "link",
    "channel": "snr_db",
    "link": LINKS[0],
    "pool": POOLS[0],
    "threshold": "6",
    "__interval": "5m",
    "__rate_interval": "5m",
    "__range": "6h",
}


def dashboard(name):
    return json.loads(DASHBOARDS[name].read_text())


def filled(text):
    return re.sub(r"\$(\w+)", lambda found: NAMES[found[1]], text)


def questions(name):
    """The title of each panel with an expression of it."""
    return [
        (panel["title"], filled(target["expr"]))
        for panel in dashboard(name)["panels"]
        for target in panel["targets"]
    ]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The listener that is asked, and the instant of the newest records of a fleet."""
    now = datetime.now(UTC)
    data = tmp_path_factory.mktemp("grafana") / "data"
    with running(data, *LISTENER) as service:
        records = [*generated_fleet(now)]
        for first in range(0, len(records), BATCH_RECORDS):
            assert service.post(records[first : first + BATCH_RECORDS]).status == 202
        address, headers = service.ready["adapters"], {"Authorization": f"Bearer {service.key}"}
        server = Server(address, headers, service.process.pid)
        yield server, now.replace(second=0, microsecond=0).timestamp()
        server.close()


def values(asked, expression):
    server, now_s = asked
    answer = server.ask("/api/v1/query", query=expression, time=str(now_s))
    assert answer["status"] == "success", (expression, answer)
    return answer["data"]["result"]


def test_each_panel_asks_a_data_source_that_is_provisioned():
    file = FOLDER / "provisioning" / "datasources" / "fleetcast.yml"
    known = {each["uid"]: each["type"] for each in yaml.safe_load(file.read_text())["datasources"]}
    known["${prometheus}"] = "prometheus"  # the reader's own, which scrapes the private listener
    uids = set()
    for name in DASHBOARDS:
        document = dashboard(name)
        uids.add(document["uid"])
        for panel in document["panels"]:
            for source in (panel["datasource"], *(each["datasource"] for each in panel["targets"])):
                assert known[source["uid"]] == source["type"], (name, panel["title"])
    assert len(uids) == len(DASHBOARDS)


@pytest.mark.parametrize("name", OF_TENANTS)
def test_each_question_about_a_fleet_has_an_answer(asked, name):
    silent = [title for title, expression in questions(name) if not values(asked, expression)]
    assert silent == []


def test_a_link_that_fell_silent_is_counted(asked):
    expressions = dict(questions("channels"))
    (count,) = values(asked, expressions["Silent for five minutes"])
    assert count["value"][1] == "1"
    (entities,) = values(asked, expressions["Entities of the last day"])
    assert entities["value"][1] == str(len(LINKS))
    newest = values(asked, expressions["Newest values, the lowest first"])
    assert {each["metric"]["entity_id"] for each in newest} == {*LINKS} - {SILENT_LINK}


@pytest.mark.parametrize(
    ("name", "variable", "expected"),
    [
        ("channels", "measurement", {"link", "satellite", "ground_station", "weather"}),
        ("channels", "channel", {"snr_db", "elevation_deg"}),
        ("link", "link", {*LINKS}),
        ("pool", "pool", {*POOLS}),
    ],
)
def test_a_variable_offers_what_was_written(asked, name, variable, expected):
    variables = {each["name"]: each for each in dashboard(name)["templating"]["list"]}
    selector, label = CHOICES.fullmatch(variables[variable]["query"]["query"]).groups()
    parameters = {} if selector is None else {"match[]": filled(selector)}
    server, _ = asked
    answer = server.ask(f"/api/v1/label/{label}/values", **parameters)
    assert expected <= {*answer["data"]}


def test_the_dashboard_of_the_service_asks_for_metrics_that_it_has(asked):
    known = set().union(*map(names_of, FAMILIES))
    for title, expression in questions("service"):
        names = set(METRIC.findall(expression))
        assert names, title
        assert names <= known
        assert values(asked, expression) == [], "the tenant has no such metric, and no error"


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_own_library_takes_each_key(name, monkeypatch):
    """A key that the schema does not have would be lost."""
    if not (HERE and SDK.exists()):
        pytest.skip("no grafana-foundation-sdk: make integrations installs it")
    monkeypatch.syspath_prepend(SDK)
    models = importlib.import_module("grafana_foundation_sdk.models.dashboard")
    encoder = importlib.import_module("grafana_foundation_sdk.cog.encoder")
    document = dashboard(name)
    taken = json.loads(encoder.JSONEncoder().encode(models.Dashboard.from_json(document)))
    assert_within(document, taken)


def assert_within(part, whole):
    """Asserts that the whole has each key of the part, with its value."""
    match part:
        case dict():
            assert part.keys() <= whole.keys()
            for key, value in part.items():
                assert_within(value, whole[key])
        case list():
            assert len(part) == len(whole)
            for one, other in zip(part, whole, strict=True):
                assert_within(one, other)
        case _:
            assert part == whole
