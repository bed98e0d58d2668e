"""Line protocol on the three paths of InfluxDB."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from fleetcast.config import Settings
from fleetcast.config.sections import Limits

from .serving import NOW_S, Served, mapping_of, time_of

PATHS = ("/write", "/api/v2/write", "/api/v3/write_lp")
LINES = b"link,entity_id=a snr_db=1.5 1790000000\n"
ROW = ("link", time_of(NOW_S), {"entity_id": "a"}, {"snr_db": 1.5})


@pytest.fixture
def served():
    return Served()


@pytest.mark.parametrize("path", PATHS)
def test_lines_are_stored_and_204_says_so(served, path):
    answer = served.post(path, LINES, precision="s")
    assert (answer.status_code, answer.content) == (204, b"")
    assert served.rows() == [ROW]


@pytest.mark.parametrize("path", PATHS)
def test_lines_are_stored_under_the_names_of_the_operator(path, tmp_path):
    mapping = mapping_of(
        tmp_path,
        '[[map]]\nfrom = "cpu"\nto = "telemetry"\nprefix = "cpu_"\nentity = "host"\n'
        '[[map]]\nfrom = "*"\nentity = "id"\n',
    )
    served = Served(mapping)
    body = b"cpu,host=a,core=0 idle=1,up=t 1790000000\nlink,id=b snr_db=2 1790000000"
    assert served.post(path, body, precision="s").status_code == 204
    cpu = {"entity_id": "a", "core": "0"}, {"cpu_idle": 1.0, "cpu_up": True}
    assert served.rows() == [
        ("link", time_of(NOW_S), {"entity_id": "b"}, {"snr_db": 2.0}),
        ("telemetry", time_of(NOW_S), *cpu),
    ]


@pytest.mark.parametrize(
    ("path", "precision", "unit_ns"),
    [
        *(("/write", name, unit) for name, unit in [("n", 1), ("ns", 1), ("u", 1000)]),
        *(("/write", name, unit) for name, unit in [("ms", 10**6), ("s", 10**9), ("µ", 1000)]),
        *(("/write", name, unit) for name, unit in [("m", 60 * 10**9), ("h", 3600 * 10**9)]),
        *(("/api/v2/write", name, unit) for name, unit in [("us", 1000), ("ms", 10**6)]),
        *(("/api/v3/write_lp", name, unit) for name, unit in [("second", 10**9), ("ns", 1)]),
        *(("/api/v3/write_lp", "auto", unit) for unit in (1, 1000, 10**6, 10**9)),
        *(("/api/v3/write_lp", None, unit) for unit in (1, 1000, 10**6, 10**9)),
    ],
)
def test_times_are_in_the_unit_of_the_precision(served, path, precision, unit_ns):
    seconds = NOW_S - NOW_S % 3600
    time = seconds * 10**9 // unit_ns
    parameters = {} if precision is None else {"precision": precision}
    assert served.post(path, f"m x=1 {time}".encode(), **parameters).status_code == 204
    assert [row[1] for row in served.rows()] == [time_of(seconds)]


@pytest.mark.parametrize(
    ("path", "precision"),
    [("/write", "x"), ("/api/v2/write", "m"), ("/api/v2/write", "n"), ("/api/v3/write_lp", "h")],
)
def test_an_unknown_precision_is_refused(served, path, precision):
    answer = served.post(path, LINES, precision=precision)
    assert answer.status_code == 400
    assert "precision" in answer.text
    assert served.rows() == []


FAULTY = (
    b"link,entity_id=a snr_db=1.5 1790000000\n"
    b"link,entity_id=a snr_db=high 1790000000\n"
    b"# a comment\n"
    b"link,entity_id=a snr_db=t 1790000000\n"
    b"link,entity_id=a snr_db=1 5\n"
    b"link snr_db\r\n"
)
REASONS = [
    (2, "fields.snr_db: Input should be a boolean, a number or a string"),
    (4, "fields.snr_db: Field was written with another type before"),
    (5, "time: Time should be 2000-01-01T00:00:00Z or later"),
    (6, "Line should be line protocol in UTF-8"),
]
IN_A_ROW = "; ".join(f"line {number}: {reason}" for number, reason in REASONS)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/write", {"error": f"partial write: {IN_A_ROW} dropped=4"}),
        (
            "/api/v2/write",
            {"code": "invalid", "message": f"partial write: {IN_A_ROW} dropped=4", "line": 2},
        ),
        (
            "/api/v3/write_lp",
            {
                "error": "partial write of line protocol occurred",
                "data": [
                    {
                        "error_message": reason,
                        "line_number": number,
                        "original_line": FAULTY.decode().splitlines()[number - 1],
                    }
                    for number, reason in REASONS
                ],
            },
        ),
    ],
)
def test_faulty_lines_are_told_and_the_others_stored(served, path, document):
    answer = served.post(path, FAULTY, precision="s")
    assert (answer.status_code, answer.json) == (400, document)
    assert served.rows() == [ROW]


def test_a_type_that_was_stored_before_is_kept(served):
    served.post("/write", LINES, precision="s")
    answer = served.post("/write", b"link snr_db=t,up=t\nlink,entity_id=a up=t\n")
    assert answer.json["error"].startswith("partial write: line 1: fields.snr_db: ")
    assert answer.json["error"].endswith(" dropped=1")


def test_nothing_is_stored_where_part_of_it_is_not_wanted(served):
    answer = served.post("/api/v3/write_lp", FAULTY, precision="s", accept_partial="false")
    assert answer.status_code == 400
    told = [(fault["line_number"], fault["error_message"]) for fault in answer.json["data"]]
    assert told == REASONS
    assert served.rows() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": "good"},
        {"authorization": "Token good"},
        {"authorization": "bearer good"},
        {"authorization": "Basic anybody:good"},
    ],
)
def test_a_key_comes_as_its_client_sends_it(served, headers):
    assert served.post("/write", LINES, headers, precision="s").status_code == 204


@pytest.mark.parametrize(
    ("headers", "status", "is_failure"),
    [
        ({}, 401, False),
        ({"authorization": "Token bad"}, 401, True),
        ({"authorization": "Basic %%"}, 401, True),
        ({"authorization": "Digest good"}, 401, True),
        ({"x-api-key": "bad", "authorization": "Token good"}, 401, True),
        ({"authorization": "Token reader"}, 403, False),
        ({"authorization": "Token idle"}, 403, False),
    ],
)
def test_a_key_that_is_no_good_is_refused_as_over_http(headers, status, is_failure):
    served = Served(settings=Settings(limits=Limits(lockout_failures=1)))
    answer = served.post("/api/v2/write", LINES, headers)
    assert answer.status_code == status
    assert answer.json["code"] == {401: "unauthorized", 403: "forbidden"}[status]
    assert served.rows() == []
    assert served.post("/write", LINES, precision="s").status_code == (429 if is_failure else 204)


def test_a_packed_body_is_unpacked(served):
    first, second = gzip.compress(LINES[:10]), gzip.compress(LINES[10:])
    headers = {"x-api-key": "good", "content-encoding": "gzip"}
    assert served.post("/write", first + second, headers, precision="s").status_code == 204
    assert served.rows() == [ROW]


@pytest.mark.parametrize(
    ("body", "coding", "status"),
    [
        (gzip.compress(b"#" * 100_000), "gzip", 413),
        (gzip.compress(LINES) + gzip.compress(b"#" * 10_000), "gzip", 413),
        (gzip.compress(LINES)[:-3], "gzip", 400),
        (LINES, "gzip", 400),
        (b"", "gzip", 400),
        (b"#" * 10_001, "identity", 413),
        (LINES, "zstd", 415),
        (LINES, "snappy", 415),
    ],
    ids=["bomb", "bomb behind", "cut", "plain", "empty", "long", "zstd", "snappy"],
)
def test_a_body_is_bounded_and_of_a_coding_that_is_known(body, coding, status):
    settings = Settings()
    adapters = replace(settings.adapters, body_bytes_max=10_000)
    served = Served(settings=replace(settings, adapters=adapters))
    headers = {"x-api-key": "good", "content-encoding": coding}
    answer = served.post("/write", body, headers)
    assert answer.status_code == status
    assert answer.json["error"]
    assert served.rows() == []


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("/write", {"p": "C:\\ temp", "s": "\\\\server"}),
        ("/api/v2/write", {"p": "C:\\ temp", "s": "\\\\server"}),
        ("/api/v3/write_lp", {"p": "C:\\ temp", "s": "\\server"}),
    ],
)
def test_backslashes_are_stored_as_the_version_of_the_client_means_them(served, path, stored):
    # A client of version 1 or 2 escapes the space alone, one of version 3 each backslash as well.
    tag = r"C:\\\ temp" if path == "/api/v3/write_lp" else r"C:\\ temp"
    body = rf"link,entity_id=a,p={tag},s=\\server snr_db=1.5,n=18446744073709551615u 1790000000"
    assert served.post(path, body.encode(), precision="s").status_code == 204
    [(_, _, tags, fields)] = served.rows()
    assert tags == {"entity_id": "a", **stored}
    assert fields == {"snr_db": 1.5, "n": 2.0**64}


@pytest.mark.parametrize("path", PATHS)
def test_without_a_table_the_entity_is_the_host_or_else_the_first_tag_by_name(served, path):
    body = (
        b"cpu,core=1,host=a x=1 1790000000\ndisk,path=/,dev=sda x=1 1790000000\nup x=1 1790000000"
    )
    assert served.post(path, body, precision="s").status_code == 204
    assert [(name, tags) for name, _, tags, _ in served.rows()] == [
        ("cpu", {"core": "1", "entity_id": "a"}),
        ("disk", {"entity_id": "sda", "path": "/"}),
        ("up", {}),
    ]


EMPTY_MEMBER = gzip.compress(b"")


@pytest.mark.parametrize(
    ("members", "status"), [(1023, 204), (1024, 413), ((16 << 20) // len(EMPTY_MEMBER) - 10, 413)]
)
def test_a_body_of_many_members_costs_no_more_than_its_bytes(served, members, status):
    # N3: each member was unpacked from a copy of all that followed it, without a bound.
    body = EMPTY_MEMBER * members + gzip.compress(LINES)
    headers = {"x-api-key": "good", "content-encoding": "gzip"}
    answer = served.post("/write", body, headers, precision="s")
    assert answer.status_code == status
    assert served.rows() == ([ROW] if status == 204 else [])


def test_more_lines_than_a_batch_may_have_are_refused_whole():
    settings = Settings()
    settings = replace(settings, adapters=replace(settings.adapters, records_max=2))
    served = Served(settings=settings)
    answer = served.post("/api/v2/write", LINES * 3, precision="s")
    assert answer.status_code == 413
    assert answer.json == {
        "code": "request too large",
        "message": "3 records, more than the 2 of a batch",
    }


@pytest.mark.parametrize("path", PATHS)
def test_a_body_without_lines_stores_nothing(served, path):
    assert served.post(path, b"").status_code == 204
    assert served.post(path, b"# none\n\n").status_code == 204
    assert served.rows() == []


def test_clients_find_the_server_that_they_ask_for(served):
    client = served.client
    ping = client.simulate_get("/ping")
    assert (ping.status_code, ping.content) == (204, b"")
    assert ping.headers["x-influxdb-version"]
    assert client.simulate_get("/ping?verbose=true").json["version"]
    health = client.simulate_get("/health")
    assert (health.status_code, health.json["status"]) == (200, "pass")
    assert client.simulate_get("/telemetry").status_code == 404
    assert client.simulate_get("/write").status_code == 405
