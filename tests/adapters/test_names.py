"""`adapters.toml`."""

from __future__ import annotations

import pytest

from fleetcast.errors import OperatorError

from .serving import Served, mapping_of


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("map = 1", "must have tables [[map]]"),
        ("[other]", "must have tables [[map]]"),
        ("[[map]]", "table 1: from is missing"),
        ('[[map]]\nfrom = ""', "table 1: from must be a string with something in it"),
        ('[[map]]\nfrom = "a"\nto = 1', "table 1: to must be a string"),
        ('[[map]]\nfrom = "a"\ntag = "b"', "tag is not one of from, to, prefix, entity"),
        ('[[map]]\nfrom = "a"\n[[map]]\nfrom = "a"', 'table 2: from = "a" is there twice'),
        ("map = [1]", "table 1 is no table"),
        ("[[map", "adapters.toml: "),
    ],
)
def test_a_faulty_file_is_one_clear_line(tmp_path, text, problem):
    with pytest.raises(OperatorError) as raised:
        mapping_of(tmp_path, text)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_prefix_may_be_nothing_and_a_record_keeps_an_entity_of_its_own(tmp_path):
    served = Served(mapping_of(tmp_path, '[[map]]\nfrom = "m"\nprefix = ""\nentity = "host"'))
    assert served.post("/write", b"m,entity_id=e,host=h x=1").status_code == 204
    ((measurement, _, tags, fields),) = served.rows()
    assert (measurement, tags, fields) == ("m", {"entity_id": "e", "host": "h"}, {"x": 1.0})


def test_rules_do_not_meet_though_their_lines_have_the_same_tags(tmp_path):
    rule = '[[map]]\nfrom = "{0}"\nto = "telemetry"\nentity = "{1}"\n'
    served = Served(mapping_of(tmp_path, rule.format("cpu", "host") + rule.format("disk", "path")))
    lines = [f"{source},host=h,path=p {source}={n}" for n in range(3) for source in ("cpu", "disk")]
    assert served.post("/write", "\n".join(lines).encode()).status_code == 204
    assert [(row[2]["entity_id"], *row[3]) for row in served.rows()] == [
        *[("h", "cpu")] * 3,
        *[("p", "disk")] * 3,
    ]
