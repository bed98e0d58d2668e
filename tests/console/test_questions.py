"""Questions in Prometheus' language: the answers, bounds and refusals of the engine, by tenant."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import pytest

from fleetcast.cli.demo.fleet import FULL_POOL, LINKS, SILENT_LINK, generated_fleet
from tests.service.service import command, running
from tests.waiting import until

from .conftest import Operator
from .fleet import load

STATIC = files("fleetcast.console") / "static"
SERIES = 600


@pytest.fixture(scope="module", autouse=True)
def tour(place):
    """A tenant with the fleet of the demo up to this time, and a tenant with many series."""
    _, data = place
    for name in ("tour", "many"):
        command(data, "tenant", "create", name)
    now = datetime.now(UTC)
    load(data, "tour", generated_fleet(now))
    record = {"measurement": "telemetry", "time": now.isoformat(), "fields": {"level": 0.1234567}}
    tags = ({"entity_id": f"ut-{number:03}"} for number in range(SERIES))
    load(data, "many", ({**record, "tags": each} for each in tags))
    yield now.timestamp()
    for name in ("tour", "many"):
        command(data, "tenant", "delete", name, "--yes")


def path(name, tenant="tour", **parameters):
    return f"tenants/{tenant}/api/v1/{name}?{urlencode(parameters, doseq=True)}"


def data(operator, name, **parameters):
    answer = operator.read(path(name, **parameters))
    assert answer["status"] == "success"
    return answer["data"]


def refused(operator, name, **parameters):
    """Status, code and message of a refusal; again if a loaded machine was too slow to refuse."""

    def look():
        answer = operator.ask(f"api/{path(name, **parameters)}")
        is_late = answer.status == 503 or answer.json.get("error") == "timeout"
        return None if is_late else answer

    answer = until(look)
    return answer.status, answer.json["error"], answer.json["message"]


def test_a_question_has_the_answer_of_the_listener_for_other_protocols(operator, tour):
    count = data(operator, "query", query='count(last_over_time(snr_db{measurement="link"}[1d]))')
    ((metric, value),) = (item.values() for item in count["result"])
    assert (count["resultType"], metric, value[1]) == ("vector", {}, str(len(LINKS)))
    span = {"start": tour - 600, "end": tour, "step": 60}
    ranged = data(operator, "query_range", query="max(max_over_time(snr_db[1h]))", **span)
    assert len(ranged["result"][0]["values"]) == 11


def test_names_for_completion_are_of_the_tenant(operator):
    assert "snr_db" in data(operator, "label/__name__/values")
    assert data(operator, "label/entity_id/values", **{"match[]": "snr_db"}) == sorted(LINKS)
    assert "region" in data(operator, "labels")
    assert data(operator, "label/__name__/values", tenant="many") == ["level"]
    assert data(operator, "query", tenant="many", query="snr_db")["result"] == []


def test_the_examples_of_the_page_have_answers_on_the_demo(operator, tour):
    source = (STATIC / "views/ask.js").read_text().partition("EXAMPLES = [")[2].partition("];")[0]
    examples = re.findall(r'^  \["((?:\\.|[^"\\])*)"', source, re.MULTILINE)
    queries = [example.replace('\\"', '"') for example in examples]
    found = [data(operator, "query", query=query, time=tour)["result"] for query in queries]
    assert len(found[0]) == len(LINKS) - 1
    assert [of["metric"]["entity_id"] for of in found[2]] == [SILENT_LINK]
    assert {of["metric"]["entity_id"] for of in found[1]} <= set(LINKS)
    assert len(found[1]) == 5
    lows = [float(of["value"][1]) for of in found[1]]
    assert lows == sorted(lows)
    assert found[3][0]["metric"]["entity_id"] == FULL_POOL


@pytest.mark.parametrize(
    ("query", "words"),
    [("sum(", "parenthesis"), ("holt_winters(a[5m], 1, 1)", "holt_winters"), ("", "no expression")],
)
def test_a_question_that_is_refused_says_why(operator, query, words):
    status, code, message = refused(operator, "query", query=query)
    assert (status, code) == (400, "bad_data")
    assert words in message


def test_an_answer_is_no_longer_than_a_page_can_show(operator):
    query = f"last_over_time(level[1d] @ {time.time() + 60:.0f})"
    span = {"start": 0, "end": 1_000, "step": 1}  # 600,000 values of 16 bytes and more
    status, code, message = refused(operator, "query_range", tenant="many", query=query, **span)
    assert (status, code) == (422, "execution"), message
    assert "the console shows 8 MB" in message


def test_a_client_cannot_ask_for_more_time_than_the_console_waits(operator):
    answer = operator.ask(f"api/{path('query', query='1', timeout='soon')}")
    assert answer.status == 200  # the console's own limit counts


def test_a_question_beyond_a_bound_says_which(tmp_path):
    bound = ("--set", "adapters.query_samples_max=3")
    with running(tmp_path / "data", "--admin", "127.0.0.1:0", *bound) as service:
        own = Operator(service, tmp_path / "data").sign_in()
        span = {"start": 0, "end": 10, "step": 1}
        _, code, message = refused(own, "query_range", tenant="acme", query="vector(1)", **span)
    assert code == "execution"
    assert "adapters.query_samples_max" in message


def test_only_operators_ask_and_only_to_read(operator, stranger):
    asked = f"api/{path('query', query='1')}"
    assert stranger.ask(asked).status == 401
    assert operator.ask(asked, "POST").status == 405
    assert operator.ask(asked, Sec_Fetch_Site="same-site").status == 403
    assert operator.ask(f"api/{path('query', tenant='nobody', query='1')}").status == 404
    assert operator.ask(f"api/{path('write')}").json["error"] == "bad_data"


def test_completion_knows_the_words_that_the_documentation_has():
    source = (STATIC / "language.js").read_text()
    page = Path("docs/prometheus.md").read_text()

    def words(name):
        return set(re.findall(r'"(\w+)"', source.partition(f"{name} = [")[2].partition("]")[0]))

    def documented(*rows):
        lines = [re.search(rf"^\| {row} \| (.*) \|$", page, re.MULTILINE)[1] for row in rows]
        return set(re.findall(r"`(\w+)`", " ".join(lines))) - {"by", "without", "le"}

    assert words("FUNCTIONS") == documented("rates", "over time", "numbers", "dates", "vectors")
    assert words("AGGREGATIONS") == documented("aggregation")
