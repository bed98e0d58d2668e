"""C: the record schema, JSON, and what is said about either."""

from __future__ import annotations

import json
import unicodedata

import pytest

from .api import at, faults, record, refusal

TIME = at(1)


def body(fields: str = '{"a":1}', tags: str = "{}", extra: str = "") -> bytes:
    """One record as its exact text."""
    text = f'[{{"measurement":"link","time":"{TIME}","tags":{tags},"fields":{fields}{extra}}}]'
    return text.encode()


def test_c1_every_fault_is_listed_with_its_place(quiet):
    records = [
        record(TIME),
        {"measurement": "", "time": "yesterday", "tags": {"a": 1}, "fields": {"b": None}},
        {"tags": [], "fields": 1},
        7,
    ]
    assert faults(quiet.post(records)) == [
        ("string_too_short", ["body", 1, "measurement"]),
        ("datetime_from_date_parsing", ["body", 1, "time"]),
        ("string_type", ["body", 1, "tags", "a"]),
        ("field_value_type", ["body", 1, "fields", "b"]),
        ("dict_type", ["body", 2, "tags"]),
        ("dict_type", ["body", 2, "fields"]),
        ("missing", ["body", 2, "measurement"]),
        ("missing", ["body", 2, "time"]),
        ("model_attributes_type", ["body", 3]),
    ]


def test_c1_at_most_a_hundred_faults_and_no_echo(quiet):
    found = quiet.post([{"measurement": "secret", "time": "secret"}] * 150)
    assert len(faults(found)) == 100
    assert b"secret" not in found.body


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"nope", 0),
        (b"[nope]", 1),
        (b"[{]", 2),
        (b"[1,]", 3),
        (b"[", 1),
        (b'[{"a"}]', 5),
        (b'[{"a":1,}]', 8),
        (b"[] []", 3),
        (b"[]x", 2),
        (b"  ", 2),
        (b"'[]'", 0),
        (b"[01]", 2),
        (b"[1.]", 3),
        (b"[.5]", 1),
        (b"[+1]", 1),
    ],
)
def test_c2_malformed_json_says_where(quiet, text, offset):
    assert faults(quiet.post(text)) == [("json_invalid", ["body", offset])]


@pytest.mark.parametrize(
    "text", [b"[tru]", b'["a]', b'["\\x"]', b'["\\u12"]', b'["\n"]', b"[1e]", b"[-]", b"[/**/]"]
)
def test_c2_malformed_json_is_malformed(quiet, text):
    ((kind, loc),) = faults(quiet.post(text))
    assert (kind, loc[0]) == ("json_invalid", "body")
    assert 0 <= loc[1] <= len(text)


@pytest.mark.parametrize("value", [{}, {"records": []}, None, 1, "[]", True])
def test_c3_what_is_no_array(quiet, value):
    assert faults(quiet.post(json.dumps(value).encode())) == [("list_type", ["body"])]


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "nan", "inf"])
def test_c4_no_json_has_these_numbers(quiet, token):
    ((kind, _),) = faults(quiet.post(body(f'{{"a":{token}}}')))
    assert kind == "json_invalid"


@pytest.mark.parametrize("token", ["1e999", "-1e999", "1" + "0" * 309, "1.8e308", "1e99999999999"])
def test_c5_numbers_beyond_a_double(quiet, token):
    answer = quiet.post(body(f'{{"a":{token}}}'))
    assert faults(answer) == [("finite_number", ["body", 0, "fields", "a"])]


@pytest.mark.parametrize(
    ("token", "stored"),
    [
        ("9007199254740993", 9007199254740992.0),
        ("1" + "0" * 308, 1e308),
        ("0." + "0" * 5000 + "1", 0.0),
        ("1" + "0" * 5000 + "e-5000", 1.0),
        ("179769313486231570000e288", 1.7976931348623157e308),
        ("4.9406564584124654e-324", 5e-324),
        ("2.2250738585072011e-308", 2.225073858507201e-308),
        ("0.1", 0.1),
        ("1E2", 100.0),
    ],
)
def test_c6_c7_the_nearest_double_is_stored(tenant, token, stored):
    assert tenant.post(body(f'{{"a":{token}}}', '{"entity_id":"e"}')).status == 202
    assert tenant.rows() == [(TIME, {"a": stored})]


def test_c7_minus_zero_keeps_its_sign(tenant):
    assert tenant.post(body('{"a":-0.0,"b":-0}', '{"entity_id":"e"}')).status == 202
    ((_, fields),) = tenant.rows()
    assert [str(value) for value in fields.values()] == ["-0.0", "-0.0"]
    assert b'"a":-0.0' in tenant.topology().body


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (body('{"a":1,"a":2}'), ["fields", "a"]),
        (body('{"a":1,"\\u0061":2}'), ["fields", "a"]),
        (body(tags='{"t":"x","t":"x"}'), ["tags", "t"]),
        (body(extra=f',"time":"{TIME}"'), ["time"]),
        (body(extra=',"fields":{}'), ["fields"]),
        (body(extra=',"measurement":"link"'), ["measurement"]),
        (body(extra=',"other":1,"other":2'), ["other"]),
    ],
    ids=["field", "escaped field", "tag", "time", "fields", "measurement", "other"],
)
def test_c8_a_key_may_not_occur_twice(quiet, text, where):
    assert ("duplicate_key", ["body", 0, *where]) in faults(quiet.post(text))


def test_c9_nesting_is_limited_to_eight(tenant):
    def nested(depth):
        """`depth` levels, the array and the record counted."""
        return body(extra=f',"x":{"[" * (depth - 2)}1{"]" * (depth - 2)}')

    assert tenant.post(nested(8)).status == 202
    ((kind, _),) = faults(tenant.post(nested(9)))
    assert kind == "json_invalid"


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_c9_a_hundred_thousand_brackets(quiet, opening):
    ((kind, _),) = faults(quiet.post(b"[" + opening * 100_000))
    assert kind in {"json_invalid", "model_attributes_type"}


@pytest.mark.parametrize("text", ['"\\ud800"', '"\\udfff"', '"\\ud800\\u0041"', '"\\udc00\\ud800"'])
@pytest.mark.parametrize("where", ["field", "field name", "tag", "tag name", "other"])
def test_c10_lone_surrogates_are_no_json(quiet, text, where):
    sent = {
        "field": body(f'{{"a":{text}}}'),
        "field name": body(f"{{{text}:1}}"),
        "tag": body(tags=f'{{"a":{text}}}'),
        "tag name": body(tags=f'{{{text}:"a"}}'),
        "other": body(extra=f',"a":{text}'),
    }[where]
    ((kind, _),) = faults(quiet.post(sent))
    assert kind == "json_invalid"


def test_c10_a_pair_of_surrogates_is_one_character(tenant):
    tenant.post(body('{"a":"\\ud83d\\udef0"}', '{"entity_id":"\\ud83d\\udef0"}'))
    (entity,) = tenant.entities()
    assert (entity["entity_id"], entity["fields"]) == ("\N{SATELLITE}", {"a": "\N{SATELLITE}"})


@pytest.mark.parametrize("odd", ["\x00", "\x1f", "\x7f", "\n", "\u2028", "\ufeff", '"', "\\", "</"])
def test_c11_any_character_may_be_written_and_comes_back(tenant, odd):
    name = f"a{odd}b"
    tenant.write(
        {
            "measurement": name,
            "time": TIME,
            "tags": {"entity_id": name, name: name},
            "fields": {name: name},
        }
    )
    assert tenant.entities() == [
        {
            "measurement": name,
            "entity_id": name,
            "observed_at": TIME,
            "tags": {"entity_id": name, name: name},
            "fields": {name: name},
        }
    ]


@pytest.mark.parametrize("name", [" ", "\t", "\u00a0"])
def test_c12_a_blank_measurement_is_not_empty(tenant, name):
    tenant.write(record(TIME, measurement=name))
    assert [entity["measurement"] for entity in tenant.entities()] == [name]


def test_c13_spellings_are_not_normalised(tenant):
    composed = "\N{LATIN SMALL LETTER E WITH ACUTE}"
    spellings = [unicodedata.normalize(form, composed) for form in ("NFC", "NFD")]
    tenant.write(*(record(TIME, entity=name, snr_db=n) for n, name in enumerate(spellings)))
    assert {entity["entity_id"] for entity in tenant.entities()} == set(spellings)
    for number, name in enumerate(spellings):
        assert tenant.rows(name) == [(TIME, {"snr_db": float(number)})]


def test_c14_unknown_keys_are_ignored(tenant):
    tenant.write({**record(TIME), "extra": {"deep": [1, None, "x"]}, "value": None})
    assert tenant.rows() == [(TIME, {"snr_db": 1.0})]


@pytest.mark.parametrize("name", ["tenant", "tenant_id", "tenant_key"])
@pytest.mark.parametrize("value", ["other", 7, None, ["x"]])
def test_c15_a_tenant_beside_the_record_is_ignored(tenant, name, value):
    tenant.write({**record(TIME), name: value})
    (entity,) = tenant.entities()
    assert entity["tags"] == {"entity_id": "e"}


def test_c15_a_tenant_in_the_tags_becomes_the_callers(tenant):
    names = ("tenant", "tenant_id", "tenant_key")
    forged = {**record(TIME), "tags": {"entity_id": "e", **dict.fromkeys(names, "other")}}
    tenant.write(forged)
    (entity,) = tenant.entities()
    assert entity["tags"] == {"entity_id": "e", **dict.fromkeys(names, tenant.name)}


@pytest.mark.parametrize("name", ["tags", "fields"])
@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_c16_tags_and_fields_are_objects(quiet, name, value):
    answer = quiet.post([{**record(TIME), name: value}])
    assert faults(answer) == [("dict_type", ["body", 0, name])]


def test_c17_no_fields_is_a_matter_of_the_record(tenant):
    absent = {"measurement": "link", "time": TIME}
    answer = tenant.post([absent, record(TIME), {**absent, "fields": {}}])
    assert answer.status == 202
    assert answer.json["accepted_count"] == 1
    assert answer.json["rejected_indices"] == [0, 2]


@pytest.mark.parametrize("value", [None, [], [1], {}, {"a": 1}])
def test_c18_a_field_is_boolean_number_or_string(tenant, value):
    answer = tenant.post([record(TIME), record(TIME, a=value)])
    assert faults(answer) == [("field_value_type", ["body", 1, "fields", "a"])]
    assert tenant.entities() == []


@pytest.mark.parametrize("value", [1, 1.5, True, None, [], {}])
def test_c19_a_tag_is_a_string(tenant, value):
    wrong = {**record(TIME), "tags": {"entity_id": "e", "site": value}}
    answer = tenant.post([record(TIME), wrong])
    assert faults(answer) == [("string_type", ["body", 1, "tags", "site"])]
    assert tenant.entities() == []


@pytest.mark.parametrize("value", [1, None, True, [], {}])
def test_c19_so_is_the_measurement(quiet, value):
    answer = quiet.post([{**record(TIME), "measurement": value}])
    assert faults(answer) == [("string_type", ["body", 0, "measurement"])]


TOO_MANY_TAGS = (400, {"error": "invalid_input", "field": "tags"})


def tagged(count, **changes):
    tags = {f"t{number}": "x" for number in range(count - 1)}
    return {**record(TIME), "tags": {"entity_id": "e", **tags}, **changes}


def test_c20_sixty_four_tags_and_no_more(tenant):
    assert tenant.post([tagged(64)]).status == 202
    assert refusal(tenant.post([record(at(2), entity="f"), tagged(65)])) == TOO_MANY_TAGS
    assert [entity["entity_id"] for entity in tenant.entities()] == ["e"]


@pytest.mark.parametrize("changes", [{"fields": {}}, {"time": "1999-12-31T00:00:00Z"}])
def test_c20_even_on_a_record_that_is_rejected_anyway(tenant, changes):
    assert refusal(tenant.post([record(TIME), tagged(65, **changes)])) == TOO_MANY_TAGS
    assert tenant.entities() == []


def test_c21_what_the_server_stamps_does_not_count(tenant):
    sent = tagged(63)
    sent["tags"]["tenant_key"] = "forged"
    tenant.write({**sent, "tenant": "forged"})
    (entity,) = tenant.entities()
    assert len(entity["tags"]) == 64


def test_c22_an_empty_tag_key_fails_the_batch(tenant):
    wrong = {**record(TIME), "tags": {"entity_id": "e", "": "x"}}
    assert refusal(tenant.post([record(TIME), wrong])) == TOO_MANY_TAGS
    assert tenant.entities() == []


def test_c23_an_empty_tag_value_is_kept(tenant):  # G15
    tenant.write({**record(TIME), "tags": {"entity_id": "e", "site": ""}})
    assert tenant.entities()[0]["tags"] == {"entity_id": "e", "site": ""}


@pytest.mark.parametrize("tags", [{}, {"entity_id": ""}, {"entity_type": "link"}])
def test_c23_c30_a_record_without_entity_is_stored_and_shown_nowhere(tenant, tags):
    tenant.write({**record(TIME), "tags": tags}, record(TIME))
    assert [entity["entity_id"] for entity in tenant.entities()] == ["e"]
    assert tenant.get("/account/state").json["usage"]["records_accepted_total"] == 2


def test_c30_tags_may_be_absent(tenant):
    tenant.write({"measurement": "link", "time": TIME, "fields": {"a": 1}})
    assert tenant.entities() == []


def test_c24_an_empty_field_name(quiet):
    answer = quiet.post([{**record(TIME), "fields": {"": 1}}])
    assert faults(answer) == [("string_too_short", ["body", 0, "fields", ""])]


def test_c25_names_may_be_long(tenant):
    name = "n" * 20_000
    sent = record(TIME, entity=name, measurement=name, **{name: name})
    sent["tags"][name] = name
    tenant.write(sent)
    (entity,) = tenant.entities()
    assert (entity["measurement"], entity["entity_id"]) == (name, name)
    assert (entity["tags"], entity["fields"]) == (sent["tags"], {name: name})


def test_c26_an_empty_batch_is_accepted(quiet):
    answer = quiet.post([])
    assert answer.status == 202
    write_id = answer.json["write_id"]
    assert answer.json == {
        "write_id": write_id,
        "accepted_count": 0,
        "rejected_count": 0,
        "rejected_indices": None,
    }


def test_c27_a_batch_may_be_rejected_record_by_record(tenant):
    answer = tenant.post([{"measurement": "link", "time": TIME}] * 3)
    assert answer.status == 202
    assert answer.json["accepted_count"] == 0
    assert answer.json["rejected_count"] == 3
    assert answer.json["rejected_indices"] == [0, 1, 2]


@pytest.mark.parametrize("element", ["1", "{}", "[]", '{"measurement":7}'])
def test_c28_a_thousand_and_one_elements_whatever_they_are(tenant, element):
    answer = tenant.post(f"[{','.join([element] * 1001)}]".encode())
    expected = {"error": "batch_too_large", "max": 1000, "received": 1001}
    assert refusal(answer) == (413, expected)


def test_c28_a_thousand_records_are_a_batch(tenant):
    tenant.write(*(record(at(number), snr_db=number) for number in range(1000)))
    assert tenant.series().json["series"][0]["point_count"] == 1000


def test_c29_a_body_too_long_goes_before_a_batch_too_large(quiet):
    text = f"[{','.join(['{}'] * 1001)}]".encode().ljust(1_048_577)
    assert refusal(quiet.post(text)) == (413, {"error": "request_too_large"})
