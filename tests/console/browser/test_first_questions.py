"""Questions of a new user: each answer is seen after at most three clicks from the overview."""

from __future__ import annotations

import re

import pytest

from tests.waiting import until

CLICKS_MAX = 3
SILENT = "a[href*='tenant=harbour'][href*='silent=']"


def view(name):
    """The link of a view, above each page."""
    return f"nav a[href^='#/{name}']"


# Clicks are on elements, or on the element that has a text; the answer is a text of the page.
QUESTIONS = [
    ("Who is silent?", [SILENT], r"ship-07"),
    (
        "What was the worst link of the night?",
        [view("ask"), ".examples li:nth-of-type(2) button"],
        r"5 series at .*link-\d",
    ),
    ("Will link-1 hold?", [view("outlook")], r"link-1(over|under)? ?\d+ %"),
    ("Is my disk enough?", [], r"Disk full in .*(years|d|h)"),
    ("Who is refused, and why?", [view("refusals")], r"The key is missing, .*harbour"),
    ("Which tenant sends most?", [view("tenants")], r"Records/s.*harbour"),
    (
        "Where are my ships?",
        [view("entities"), "option[value='map']"],
        r"\d+ of [\d,]+ entities have a place",
    ),
    ("Is the service well?", [view("processes")], r"Serviceready"),
    ("Can I trust the forecasts?", [view("backtest")], r"\d+ % (better|worse)"),
    (
        "What did ship-07 send before it fell silent?",
        [SILENT, "ship-07", ".detail .actions button"],
        r"knots mean of ",
    ),
]


@pytest.mark.parametrize(("question", "clicks", "answer"), QUESTIONS)
def test_a_question_is_answered_by_looking(console, question, clicks, answer):
    if "forecast" in question or "hold" in question:
        pytest.importorskip("onnxruntime")
    assert len(clicks) <= CLICKS_MAX
    console.service.get("/topology", key="ftk_sandbox_no")
    console.service.post(b"[")
    console.resize(1280)
    console.driver.get("about:blank")  # so that the page has no tenant chosen
    console.driver.get(console.base)
    console.wait("nav a")
    for click in clicks:
        until(lambda click=click: clicked(console, click))
    until(lambda: re.search(answer, seen(console)))


def clicked(console, what):
    """Clicks on the first element of a selector, or with a text, once there is one."""
    return console.script(
        "const found = /[\\[.]/.test(arguments[0]) ? document.querySelector(arguments[0])"
        "  : [...document.querySelectorAll('tbody td')]"
        "    .find((at) => at.textContent === arguments[0]);"
        "if (found instanceof HTMLOptionElement) {"
        "  found.selected = true;"
        "  found.parentElement.dispatchEvent(new Event('change'));"
        "} else found?.click();"
        "return Boolean(found);",
        what,
    )


def seen(console):
    return console.script("return document.getElementById('main').textContent")
