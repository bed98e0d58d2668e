"""A11 to A19: methods, paths and query strings."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.waiting import until_well

from .api import GETS, ask, at, faults, head, raw, record, refusal, untimed


@pytest.mark.parametrize("path", GETS, ids=untimed)
def test_a11_head_is_get_without_a_body(quiet, path):
    wanted = until_well(lambda: ask(quiet, "GET", path))
    asked = head("HEAD", path, quiet.key)
    with raw(quiet.service) as client:
        answer = until_well(lambda: client.send(asked).response(head_only=True))
        assert answer.status == wanted.status == 200
        assert {n.lower() for n in answer.headers} == {n.lower() for n in wanted.headers}
        # The next answer begins right behind the head, so there was no body.
        assert client.send(head("GET", "/health", None)).response().status == 200


@pytest.mark.parametrize("path", ["/topology", "/topology/series", "/predictions"])
def test_a11_head_needs_a_key_where_get_does(quiet, path):
    assert ask(quiet, "HEAD", path, key=None).status == 401


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        *((m, "/telemetry", {"POST"}) for m in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE")),
        *((m, "/topology", {"GET", "HEAD"}) for m in ("POST", "DELETE", "BREW", "get", "PROPFIND")),
        ("POST", "/health", {"GET", "HEAD"}),
        ("PUT", "/account/state", {"GET", "HEAD"}),
        ("CONNECT", "/predictions", {"GET", "HEAD"}),
    ],
)
def test_a12_other_methods_are_405_with_allow(quiet, method, path, allowed):
    """No key is needed to learn it: routing comes before authentication."""
    answer = ask(quiet, method, path, key=None)
    assert answer.status == 405
    assert method == "HEAD" or refusal(answer) == (405, {"error": "method_not_allowed"})
    assert {name.strip() for name in answer.headers["Allow"].split(",")} >= allowed


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/nowhere", "/telemetry/", "//telemetry", "/topology//series", "/Topology"),
        *("/health/", "/health/nothing", "/./telemetry", "/health/../telemetry"),
        *("/health/%2e%2e/telemetry", "/topology%2Fseries", "/%74elemetry", "/telemetry%00"),
        *("/telemetry;v=1", "/telemetry%3Fa", "/telemetry%20"),
    ],
)
def test_a13_a14_only_the_exact_path_exists(quiet, path):
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        fields = ["Content-Length: 2"] if method == "POST" else []
        answer = ask(quiet, method, path, *fields, body=b"[]" if fields else b"")
        assert refusal(answer) == (404, {"error": "not_found"})


def test_a15_a_hundred_link_ids_fit_the_request_line(quiet):
    query = "&".join(f"link_ids={number:036}" for number in range(100))
    assert len(query) > 4094
    assert ask(quiet, "GET", f"/predictions?{query}").status == 200  # not 414


def test_a15_a_longer_request_line_is_414_in_json(quiet):
    answer = ask(quiet, "GET", f"/topology?a={'a' * 9000}")
    assert answer.status == 414
    assert list(answer.json) == ["error"]


def test_a16_plus_is_a_space_and_empty_pairs_are_nothing(tenant):
    tenant.write(record(at(1), entity="a b"))
    query = f"&&entity_id=a+b&&start={at(0)}&end={at(60)}&measurement=link&"
    answer = ask(tenant, "GET", f"/topology/series?{query}")
    assert answer.json["series"][0]["entity_id"] == "a b"
    assert answer.json["series"][0]["point_count"] == 1


@pytest.mark.parametrize("name", ["entity_id", "measurement", "fields"])
@pytest.mark.parametrize("text", ["%FF", "%C3", "a%ED%A0%80", "%F5%80%80%80"])
def test_a16_invalid_utf8_on_series_is_400_and_names_the_parameter(quiet, name, text):
    good = {"entity_id": "e", "start": at(0), "end": at(60), "measurement": "link"}
    query = "&".join(f"{key}={value}" for key, value in {**good, name: text}.items())
    answer = ask(quiet, "GET", f"/topology/series?{query}")
    assert refusal(answer) == (400, {"error": "invalid_input", "field": name})


def test_a16_invalid_utf8_elsewhere(quiet):
    answer = ask(quiet, "GET", "/topology?measurement=%FF")
    assert refusal(answer) == (400, {"error": "invalid_input", "field": "measurement"})
    for name in ("as_of_utc", "freshness_seconds"):
        answer = ask(quiet, "GET", f"/topology?{name}=%FF")
        assert [loc for _, loc in faults(answer)] == [["query", name]]
    for name in ("start", "end", "interval", "agg"):
        series = {"entity_id": "e", "start": at(0), "end": at(9), name: "%FF"}
        query = "&".join(f"{key}={value}" for key, value in series.items())
        answer = ask(quiet, "GET", f"/topology/series?{query}")
        assert [loc for _, loc in faults(answer)] == [["query", name]]


def test_a17_a_plus_lost_to_a_space_is_explained(quiet):
    answer = ask(quiet, "GET", "/topology?as_of_utc=2026-01-01T00:00:00+00:00")
    assert [loc for _, loc in faults(answer)] == [["query", "as_of_utc"]]
    assert "%2B" in answer.json["detail"][0]["msg"]
    assert ask(quiet, "GET", "/topology?as_of_utc=2026-01-01T00:00:00%2B00:00").status == 200


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        *(("/topology", n, v) for n, v in (("as_of_utc", "2026-01-01"), ("measurement", "link"))),
        ("/topology", "freshness_seconds", "5"),
        *(
            ("/topology/series?entity_id=e&start=2026-01-01", name, value)
            for name, value in (("end", "2026-01-02"), ("measurement", "link"), ("fields", "a"))
        ),
        ("/topology/series?entity_id=e&start=2026-01-01", "interval", "1m"),
        ("/topology/series?entity_id=e&start=2026-01-01", "agg", "min"),
        ("/topology/series?entity_id=e&start=2026-01-01", "start", "2026-01-01"),
    ],
)
def test_a18_a_single_valued_parameter_may_not_repeat(quiet, path, name, value):
    mark = "&" if "?" in path else "?"
    twice = f"{path}{mark}{name}={quote(value)}&{name}={quote(value)}"
    assert ("multiple_values", ["query", name]) in faults(ask(quiet, "GET", twice))


@pytest.mark.parametrize("path", GETS, ids=untimed)
def test_a19_unknown_parameters_are_ignored(quiet, path):
    mark = "&" if "?" in path else "?"
    target = f"{path}{mark}unknown=1&unknown=2&x-api-key=bad"
    assert until_well(lambda: ask(quiet, "GET", target)).json
