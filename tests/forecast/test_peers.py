"""Forecasters of others are judged on the same samples, before the issue time, and written down."""

import numpy as np
import pytest

from benches.forecast.gain import ratio
from benches.forecast.page import write
from benches.forecast.peers.__main__ import terms
from benches.forecast.peers.judging import history, part_of, set_lines
from benches.forecast.peers.peer import Peer, steps_ahead
from fleetcast.forecast.families import DEMAND, FAMILIES, SNR
from fleetcast.forecast.rows import Rows
from fleetcast.forecast.training.samples import at_steps, sampled
from fleetcast.forecast.training.sets import Span

from .conftest import DAY, MINUTE, NOON, WINDOW, link, pool

DAYS = 10
ISSUED = Span(NOON + 8 * DAY, NOON + 9 * DAY)
STEPS = {"snr": 360, "demand": 96}


def made_up(family):
    """Three entities, and samples of a day."""
    if family is SNR:
        rows = [link(range(DAYS * 1440), level) for level in (5, 10, 15)]
    else:
        rows = [pool(range(DAYS * 96), scale) for scale in (1e3, 1e6, 1e9)]
    entities = {str(index): one for index, one in enumerate(rows)}
    return sampled(family, entities, at_steps(ISSUED, 3 * 60 * MINUTE)), rows


def peer(answer, **terms):
    return Peer("made-up", "numpy", "MIT", STEPS, answer, **terms)


def constant(family, values):
    """The newest value at each horizon, and a tenth of it around."""
    newest = np.full(len(steps_ahead(family)), values[-1])
    return np.stack([newest * 0.9, newest, newest * 1.1], axis=-1)


def failing(family, values):
    raise ValueError(family.name, values[-1])


def rows_of(lines):
    """Cells of the table by forecast."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    return {row[0]: row[1:] for row in cells[2:]}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_peer_stands_beside_the_model_and_the_baselines(family, forecasters):
    samples, rows = made_up(family)
    lines = set_lines(family, "x", samples, rows, forecasters[family.name], [peer(constant)])
    found = rows_of(lines)
    assert list(found) == ["model", "last_value", "same_time", "made-up"]
    pairs = zip(samples.entity, samples.issued_ns, strict=True)
    asked = [constant(family, history(family, rows[entity], time, 96)) for entity, time in pairs]
    error = samples.truth[..., None] - np.array(asked)
    share = np.where(error > 0, family.quantiles, 1 - np.array(family.quantiles))
    loss = (np.abs(error) * share).mean(axis=(0, 2))
    assert [float(cell) for cell in found["made-up"][:4]] == pytest.approx(loss, rel=1e-3)
    assert float(found["made-up"][-1]) >= 0
    assert found["last_value"][-1] == "-"


def test_a_peer_without_an_answer_counts_as_the_last_value(forecasters):
    samples, rows = made_up(DEMAND)
    lines = set_lines(DEMAND, "x", samples, rows, forecasters["demand"], [peer(failing)])
    found = rows_of(lines)
    assert found["made-up"][:-1] == found["last_value"][:-1]
    assert f"made-up had no answer at {len(samples)} of the origins" in lines[-2]


def test_a_peer_that_answers_with_infinity_counts_as_the_last_value(forecasters):
    samples, rows = made_up(DEMAND)
    endless = peer(lambda family, values: constant(family, values) * np.inf)
    found = rows_of(set_lines(DEMAND, "x", samples, rows, forecasters["demand"], [endless]))
    assert found["made-up"][:-1] == found["last_value"][:-1]


def test_a_peer_is_not_judged_on_a_set_it_learned_from(forecasters):
    samples, rows = made_up(SNR)
    taught = [peer(failing, not_on=("x",))]
    lines = set_lines(SNR, "x", samples, rows, forecasters["snr"], taught)
    assert "made-up" not in rows_of(lines)
    assert lines[-2] == "made-up learned from this set."


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_peer_sees_nothing_after_the_issue_time(family):
    _, rows = made_up(family)
    times = rows[0].times_ns
    issued = ISSUED.start_ns
    field = rows[0].fields[family.target]
    other = np.where(times < issued, field, field * 7 + 3)
    changed = Rows(times, {family.target: other})
    steps = STEPS[family.name]
    before = history(family, rows[0], issued, steps)
    assert len(before) == steps
    assert (before == history(family, changed, issued, steps)).all()
    assert before[-1] == pytest.approx(field[times < issued][-1])


def test_gaps_are_filled_with_the_value_before():
    rows = link([*range(600), *range(640, 700)])
    values = history(SNR, rows, NOON + 700 * MINUTE, 360)
    assert len(values) == 360
    assert (values[260:300] == values[259]).all()


def test_what_was_before_the_first_value_is_left_out():
    rows = pool(range(40))
    assert len(history(DEMAND, rows, NOON + 40 * WINDOW, 96)) == 40


def test_the_same_samples_are_drawn_each_time():
    samples, _ = made_up(DEMAND)
    first, second = part_of(samples, 10), part_of(samples, 10)
    assert len(first) == 10
    assert (first.issued_ns == second.issued_ns).all()
    assert len(part_of(samples, 10**6)) == len(samples)


def test_half_of_the_error_is_half_of_the_loss():
    samples, _ = made_up(SNR)
    truth = samples.truth[..., None]
    answers = [truth + np.array([-1.0, 0.5, 1.0]) * size for size in (1, 2)]
    found = ratio(SNR, samples, *answers)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_a_section_takes_the_place_of_the_one_before(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nText.\n")
    for name, text in (("a", "first"), ("b", "second"), ("a", "third")):
        write(page, name, [f"## {name}", "", text])
    lines = [line for line in page.read_text().splitlines() if line and line[0] != "<"]
    assert lines == ["# Title", "Text.", "## a", "third", "## b", "second"]


def test_terms_of_each_peer_are_said():
    (line,) = terms([peer(constant)])[2:]
    said = ["made-up", f"numpy {np.__version__}", "MIT", "no weights", "snr 360, demand 96"]
    assert [cell.strip() for cell in line.split("|")[1:-1]] == said
