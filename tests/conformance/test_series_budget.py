"""H17, H18, H23 to H26, N4: how much an answer of `GET /topology/series` may hold, and pages."""

from __future__ import annotations

import pytest

from .api import DAY_S, INTERVALS_S, at, record, refusal


@pytest.mark.parametrize(
    ("span_s", "entities", "interval", "fits"),
    [
        (10_000 * 15, 1, "15s", True),
        (10_001 * 15, 1, "15s", False),
        (10_000 * 15 // 16, 16, "15s", True),
        (625 * 15 + 15, 16, "15s", False),
        (5_000 * 60, 2, "1m", True),
        (5_001 * 60, 2, "1m", False),
    ],
)
def test_h17_the_budget_is_entities_times_windows(quiet, span_s, entities, interval, fits):
    names = [f"e{n}" for n in range(entities)]
    span_s -= span_s % INTERVALS_S[interval]
    answer = quiet.series(names, start=at(-span_s), end=at(0), interval=interval)
    assert answer.status == (200 if fits else 422), answer.body
    if not fits:
        assert answer.json["error"] == "interval_too_fine"


@pytest.mark.parametrize(("shift", "fits"), [(0, True), (1, False)])
def test_h17_windows_that_are_touched_count_whole(quiet, shift, fits):
    answer = quiet.series(start=at(shift - 150_000), end=at(shift), interval="15s")
    assert answer.status == (200 if fits else 422)


def test_h17_collapsed_entities_count_once(quiet):
    answer = quiet.series(["e"] * 16, start=at(-150_000), end=at(0), interval="15s")
    assert answer.status == 200


@pytest.mark.parametrize(
    ("days", "entities", "interval", "smallest"),
    [
        (2, 1, "15s", "30s"),
        (4, 1, "15s", "1m"),
        (7, 1, "1m", "5m"),
        (29, 1, "30s", "5m"),
        (29, 2, "15s", "15m"),
        (29, 13, "1m", "1h"),
        (29, 15, "1h", None),
    ],
)
def test_h18_the_smallest_interval_that_fits_is_told(quiet, days, entities, interval, smallest):
    names = [f"e{n}" for n in range(entities)]
    span = {"start": at(-days * DAY_S), "end": at(0)}
    expected = {"error": "interval_too_fine", "min_interval": smallest}
    assert refusal(quiet.series(names, **span, interval=interval)) == (422, expected)
    assert refusal(quiet.series(names, **span)) == (
        422,
        {"error": "interval_required", "min_interval": smallest},
    )
    if smallest is not None:
        assert quiet.series(names, **span, interval=smallest).status == 200


def pages(tenant, entities, **parameters):
    """Every row of the pages that `next_start` leads through, and the number of pages."""
    rows = {entity: [] for entity in entities}
    start = parameters.pop("start", at(0))
    count = 0
    while start is not None:
        count += 1
        answer = tenant.series(entities, start=start, **parameters).json
        for one in answer["series"]:
            columns = one["channels"]
            for row, moment in enumerate(one["times"]):
                values = {name: column[row] for name, column in columns.items()}
                rows[one["entity_id"]].append((moment, values))
        assert answer["truncated"] is (answer["next_start"] is not None)
        assert answer["next_start"] is None or answer["next_start"] > start
        start = answer["next_start"]
    return rows, count


def test_h23_one_cut_for_all_entities_at_the_budget(tuned):
    """Budget 20: `a` has a row each second, `b` each other second; 20 rows end before second 14."""
    tuned.write(*(record(at(second), entity="a", n=second) for second in range(60)))
    tuned.write(*(record(at(second), entity="b", n=second) for second in range(0, 60, 2)))
    answer = tuned.series(["b", "a"]).json
    b, a = answer["series"]
    assert a["times"] == [at(second) for second in range(13)]
    assert b["times"] == [at(second) for second in range(0, 13, 2)]
    assert (answer["truncated"], answer["next_start"]) == (True, at(13))
    assert answer["end"] == at(3600)


def test_h23_pages_neither_lose_nor_repeat_a_row(tuned):
    entities = ["a", "b", "c"]
    expected = {entity: [] for entity in entities}
    batch = []
    for number in range(200):
        entity = entities[number * 7 % 3]
        moment = at(number * 13 % 97)
        batch.append(record(moment, entity=entity, n=number))
        expected[entity].append((moment, {"n": float(number)}))
    tuned.write(*batch)
    rows, count = pages(tuned, entities)
    assert count > 10
    for entity in entities:
        # Whole seconds sort as text; rows of one instant stay in write order.
        assert rows[entity] == sorted(expected[entity], key=lambda row: row[0])


def test_h23_an_instant_is_never_split(tuned):
    for second in range(4):
        tuned.write(*(record(at(second), n=n) for n in range(7)))
    answer = tuned.series().json
    assert answer["series"][0]["times"] == [at(0)] * 7 + [at(1)] * 7
    assert answer["next_start"] == at(2)


def test_h23_h26_a_budget_met_exactly_is_not_truncated(tuned):
    tuned.write(*(record(at(second)) for second in range(20)))
    answer = tuned.series().json
    assert answer["series"][0]["point_count"] == 20
    assert (answer["truncated"], answer["next_start"]) == (False, None)


def test_h23_no_row_of_an_unwanted_channel_counts(tuned):
    tuned.write(*(record(at(second), a=1) for second in range(100)), record(at(50), b=1))
    assert tuned.rows(fields="b") == [(at(50), {"b": 1.0})]


def test_h9_a_truncated_page_names_only_what_it_holds(tuned):
    tuned.write(*(record(at(second), a=1) for second in range(30)), record(at(29), b=1))
    (first,) = tuned.series().json["series"]
    assert set(first["channels"]) == {"a"}


def test_h25_one_instant_over_the_budget_still_makes_progress(tuned):
    tuned.write(*(record(at(5), n=n) for n in range(30)), record(at(6), n=99))
    answer = tuned.series().json
    assert answer["series"][0]["channels"] == {"n": [float(n) for n in range(20)]}
    assert answer["truncated"] is True
    assert answer["next_start"] == at(5).replace("Z", ".000000001Z")
    answer = tuned.series(start=answer["next_start"]).json
    assert answer["series"][0]["channels"] == {"n": [99.0]}
    assert answer["truncated"] is False


def test_h24_an_aggregated_read_within_the_budget_is_whole(tuned):
    tuned.write(*(record(at(second), n=1) for second in range(300)))
    answer = tuned.series(end=at(300), interval="15s").json
    assert answer["series"][0]["point_count"] == 20
    assert (answer["truncated"], answer["next_start"]) == (False, None)
    refused = tuned.series(end=at(301), interval="15s")
    assert refused.json == {"error": "interval_too_fine", "min_interval": "30s"}


def wide(second: int, *, entity: str = "e", fields: int = 99) -> dict:
    values = {f"f{n:04}": second + n / 10_000 for n in range(fields)}
    return record(at(second), entity=entity, **values)


@pytest.mark.parametrize(("interval", "step"), [(None, 1), ("15s", 15)])
def test_n4_an_answer_holds_so_many_values_times_and_nulls_included(tuned, interval, step):
    """Ten rows of 99 channels and a time are the 1,000 values of the bound; an eleventh is cut."""
    asked = {"end": at(20 * step), "interval": interval}
    tuned.write(*(wide(row * step) for row in range(10)))
    answer = tuned.series(**asked).json
    assert answer["series"][0]["point_count"] == 10
    assert (answer["truncated"], answer["next_start"]) == (False, None)

    tuned.write(record(at(10 * step), f0000=1))
    answer = tuned.series(**asked).json
    assert answer["series"][0]["point_count"] == 10
    assert (answer["truncated"], answer["next_start"]) == (True, at(10 * step))

    # A row of another entity counts by the channels of its own, and the cut is one for both.
    tuned.write(record(at(0), entity="narrow", f0000=1))
    asked["end"] = at(10 * step)
    answer = tuned.series(["narrow", "e"], **asked).json
    assert [entity["point_count"] for entity in answer["series"]] == [1, 9]
    assert answer["next_start"] == at(9 * step)


@pytest.mark.parametrize(("interval", "step"), [(None, 1), ("15s", 15)])
def test_n4_pages_have_every_value_once(tuned, interval, step):
    records = [wide(row * step, fields=row * 37 % 100 or 1) for row in range(20)]
    tuned.write(*records)
    rows, count = pages(tuned, ["e"], end=at(20 * step), interval=interval)
    assert count > 1
    found = [
        (moment, {name: value for name, value in values.items() if value is not None})
        for moment, values in rows["e"]
    ]
    assert found == [(one["time"], one["fields"]) for one in records]


def test_n4_a_time_over_the_bound_is_answered_whole(tuned):
    """A row of each entity at one time, more values than the bound: nothing of them is lost."""
    entities = [f"e{n}" for n in range(16)]
    tuned.write(*(wide(0, entity=entity) for entity in entities), record(at(1), entity="e0", n=1))
    answer = tuned.series(entities).json
    assert [len(entity["channels"]) for entity in answer["series"]] == [99] * 16
    assert (answer["truncated"], answer["next_start"]) == (True, at(1))
    answer = tuned.series(entities, start=at(1)).json
    assert [entity["point_count"] for entity in answer["series"]] == [1] + [0] * 15
    assert answer["truncated"] is False


def test_n4_one_wide_record_cuts_the_answer_by_default_as_well(tenant):
    """Rows of 4,001 channels and a time from the wide record on: 249 of them are a million."""
    narrow = [record(at(second), n=second) for second in range(300)]
    tenant.write(*narrow, wide(150, entity=narrow[0]["tags"]["entity_id"], fields=4_000))
    answer = tenant.series().json
    assert answer["series"][0]["point_count"] == 249
    assert len(answer["series"][0]["channels"]) == 4_001
    assert answer["next_start"] == at(249)
    answer = tenant.series(start=at(249)).json
    assert answer["series"][0]["point_count"] == 51
    assert set(answer["series"][0]["channels"]) == {"n"}
