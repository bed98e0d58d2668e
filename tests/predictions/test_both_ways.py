"""Kept forecasts are answered and accounted for alike by the front and by the application.

The front answers requests of HTTP/1.1 alone, so the version tells the ways apart.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.service.service import ask as ask_admin
from tests.service.service import whole_lines
from tests.waiting import until

from .conftest import link_rows, pool_rows, service_of, write

ODD = 'a "b"\\ é/🛰'
LINKS = ("link-1", "link-2", ODD)
FRONT, APPLICATION = 11, 10
KEPT = {"snr": LINKS, "demand": ("pool-1",)}
_ANSWERED = "fleetcast_http_answered_by_front_total"
_VARYING = re.compile(rb'("captured_at":)"[^"]*"')


class Requests:
    """Requests of one tenant, each on a connection of its own."""

    def __init__(self, tenant, log):
        self._tenant = tenant
        self._log = log

    def send(self, version, target, method="GET"):
        """Status, fields and content of an answer, without what differs each time."""
        connection = self._tenant.service.connect(version)
        connection.request(method, target, headers={"X-Api-Key": self._tenant.key})
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        content = _VARYING.sub(rb'\1""', answer.read())
        connection.close()
        for name in ("date", "x-request-id", "connection"):
            fields.pop(name, None)
        if answer.status == 200:
            del fields["content-length"]  # the length of an instant varies
        return answer.status, answer.reason, sorted(fields.items()), content

    def answered_by_front(self):
        text = ask_admin(self._tenant.service, "/metrics").body.decode()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if line.startswith(_ANSWERED)
        )

    def lines(self):
        """The lines of the access log about the tenant's requests."""
        lines = whole_lines(self._log)
        found = (json.loads(line) for line in lines if '"route":"/predictions"' in line)
        varying = ("timestamp", "request_id", "duration_ms", "bytes_out", "process")
        return [
            {name: value for name, value in line.items() if name not in varying}
            for line in found
            if line["tenant"] == self._tenant.name and line["error"] is None
        ]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    options = ("--workers", "1", "--admin", "127.0.0.1:0", "--set", "forecast.fresh_seconds=3600")
    for accounts in service_of(folder, *options):
        tenant = accounts.tenant("both")
        for link in LINKS:
            write(tenant, link_rows(link, 20))
        write(tenant, pool_rows("pool-1"))
        both = Requests(tenant, accounts.data / "serve.log")
        for family, entities in KEPT.items():  # they are made once
            status, *_, body = both.send(APPLICATION, target(entities, family))
            assert (status, json.loads(body)["entity_errors"]) == (200, [])
        yield both


def target(entities, family=None, horizon=None):
    pairs = [("link_ids", each) for each in entities]
    pairs += [] if family is None else [("model_family", family)]
    pairs += [] if horizon is None else [("horizon_minutes", horizon)]
    return "/predictions?" + "&".join(f"{name}={quote(str(value))}" for name, value in pairs)


def test_kept_forecasts_are_answered_by_the_front(requests):
    before = requests.answered_by_front()
    asked = [target(LINKS, horizon=60), target(KEPT["demand"], "demand", 1440)]
    asked += [target(["link-1", "", "link-1"], "snr", "+60")]
    for each in asked:
        assert requests.send(FRONT, each)[0] == 200
    assert requests.answered_by_front() - before == len(asked)
    for each in asked:
        requests.send(APPLICATION, each)
    assert requests.answered_by_front() - before == len(asked)


def test_a_missing_forecast_and_a_refusal_are_answered_by_the_application(requests):
    before = requests.answered_by_front()
    for each in (target(["link-1", "unknown"], horizon=60), target([]), target(["a"], "x")):
        requests.send(FRONT, each)
    assert requests.answered_by_front() == before


entities = st.lists(st.sampled_from([*LINKS, *LINKS, "pool-1", "unknown", ""]), max_size=5)
targets = st.builds(
    target,
    entities,
    st.none() | st.sampled_from(["snr", "snr", "demand", "", "nope"]),
    st.none() | st.sampled_from([15, 30, 60, 60, 1440, 5.0, "x", "060", "+60", -60, 10**30, ""]),
)
endings = st.sampled_from([""] * 6 + ["&", "&&", "&=", "&x=1", "&link_ids=%FF", "&%FF", "&a+b"])


@settings(
    max_examples=min(settings().max_examples, 500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(targets, endings, st.sampled_from(["GET", "GET", "GET", "HEAD"]))
@example(target(LINKS), "", "GET")
@example(target(["pool-1"], "demand"), "", "GET")
@example(target(["link-1"] * 101), "", "GET")
@example(target(["link-1"] * 100), "", "HEAD")
def test_both_ways_answer_and_account_alike(requests, asked, ending, method):
    seen = len(requests.lines())
    by_front = requests.send(FRONT, asked + ending, method)
    by_application = requests.send(APPLICATION, asked + ending, method)
    assert by_front == by_application
    if by_front[0] == 200:  # lines about refusals are bounded by the second
        until(lambda: len(requests.lines()) == seen + 2)
        first, second = requests.lines()[seen:]
        assert first == second
