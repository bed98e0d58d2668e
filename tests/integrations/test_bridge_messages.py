"""Topics and payloads become records, or say why not."""

import json

import pytest

from fleetcast.mqtt.messages import Parser
from fleetcast.mqtt.settings import TopicSettings
from fleetcast.mqtt.topics import Template

NOW_NS = 1_790_000_000_123_456_789


@pytest.mark.parametrize(
    ("template", "subscribed", "topic", "named"),
    [
        ("fleet/{entity_id}/{measurement}", "fleet/+/+", "fleet/u1/link",
         {"entity_id": "u1", "measurement": "link"}),
        ("fleet/{entity_id}", "fleet/+", "fleet/u1/link", None),
        ("fleet/{entity_id}", "fleet/+", "fleets/u1", None),
        ("+/{entity_id}/#", "+/+/#", "north/u1/a/b", {"entity_id": "u1"}),
        ("+/{entity_id}/#", "+/+/#", "north/u1", {"entity_id": "u1"}),
        ("fleet/all", "fleet/all", "fleet/all", {}),
    ],
)  # fmt: skip
def test_levels_of_a_topic_become_names(template, subscribed, topic, named):
    made = Template(template)
    assert (made.filter, made.match(topic)) == (subscribed, named)


@pytest.mark.parametrize("text", ["", "a/#/b", "a{x}", "a+", "{x}/{x}", "{}/b", "{a b}"])
def test_templates_that_broker_or_bridge_would_not_understand(text):
    with pytest.raises(ValueError, match=r"level|twice"):
        Template(text)


def parsed(payload, topic="fleet/u1/link", **options):
    topics = [TopicSettings("fleet/{entity_id}/{measurement}", **options)]
    return Parser(topics).parse(topic, json.dumps(payload).encode(), NOW_NS)


def test_an_object_is_fields_and_the_topic_says_the_rest():
    found = parsed({"time": "2026-01-01T00:00:00Z", "snr_db": 1.5, "up": True}, tags={"site": "n"})
    assert found.timed
    assert found.records == [
        {
            "measurement": "link",
            "time": "2026-01-01T00:00:00Z",
            "tags": {"site": "n", "entity_id": "u1"},
            "fields": {"snr_db": 1.5, "up": True},
        }
    ]


def test_a_record_says_its_own_names_but_not_another_entity():
    record = {"measurement": "weather", "tags": {"entity_id": "x", "a": "b"}, "fields": {"t": 1}}
    (found,) = parsed(record).records
    assert (found["measurement"], found["tags"]) == ("weather", {"entity_id": "u1", "a": "b"})


@pytest.mark.parametrize(
    ("time", "unit", "text"),
    [
        (1_790_000_000, "s", "2026-09-21T14:13:20.000000000Z"),
        (1_790_000_000.123, "s", "2026-09-21T14:13:20.123000000Z"),
        (1_790_000_000_123, "ms", "2026-09-21T14:13:20.123000000Z"),
        (NOW_NS, "ns", "2026-09-21T14:13:20.123456789Z"),
    ],
)
def test_times_that_are_numbers(time, unit, text):
    (record,) = parsed({"time": time, "a": 1}, time_unit=unit).records
    assert record["time"] == text


def test_records_without_a_time_get_that_of_the_receipt_each_its_own():
    found = parsed([{"a": 1}, {"a": 2}])
    assert not found.timed
    times = [record["time"] for record in found.records]
    assert times == ["2026-09-21T14:13:20.123456789Z", "2026-09-21T14:13:20.123456790Z"]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "Expecting value"),
        (b"\xff\xfe\xfd", "decode"),
        (b"7", "object of fields"),
        (b"[]", "0 records"),
        (b"{}", "fields: there are none"),
        (b'{"time": "2026-01-01T00:00:00Z"}', "fields: there are none"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": [1]}', "fields.a"),
        (b'{"a": 1, "time": "yesterday"}', "time"),
        (b'{"a": 1, "time": 1e300}', "time"),
        (b'{"a": 1, "time": 1e999}', "time"),
        (b'{"a": 1, "time": "1999-01-01T00:00:00Z"}', "before 2000"),
        (b'{"a": 1, "time": true}', "time"),
        (b'{"fields": {"a": 1}, "tags": 7}', "tags"),
        (b"[" * 100_000, "deep"),
        (json.dumps([{"a": 1}] * 1001).encode(), "1001 records"),
    ],
)
def test_poison_says_why(payload, reason):
    parser = Parser([TopicSettings("fleet/{entity_id}")])
    with pytest.raises(ValueError, match=reason):
        parser.parse("fleet/u1", payload, NOW_NS)
