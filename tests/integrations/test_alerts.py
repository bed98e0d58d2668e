"""Alerts of docs/operations.md: each has a rule, and each rule is tried by Prometheus itself."""

import re
import shutil
import subprocess

import pytest
import yaml

from fleetcast.metrics.families import FAMILIES
from fleetcast.surface.error_codes import ERROR_CODES
from tests.tidy.files import ROOT

FOLDER = ROOT / "integrations" / "prometheus"
PROMTOOL = shutil.which("promtool")
METRIC = re.compile(r"\bfleetcast_\w+")
OF_HISTOGRAM = ("_bucket", "_sum", "_count")


def rules():
    groups = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def cases():
    return yaml.safe_load((FOLDER / "rules.test.yml").read_text())["tests"]


def documented():
    page = (ROOT / "docs" / "operations.md").read_text()
    (section,) = re.findall(r"^## Alerts\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def names_of(family):
    suffixes = OF_HISTOGRAM if family.kind == "histogram" else ("",)
    return {f"{family.name}{suffix}" for suffix in suffixes}


def test_each_alert_of_the_page_has_a_rule_and_each_rule_a_line():
    assert documented() == list(rules())


def test_rules_ask_for_metrics_that_the_service_has():
    known = set().union(*map(names_of, FAMILIES))
    asked = {name for rule in rules().values() for name in METRIC.findall(rule["expr"])}
    assert asked
    assert asked - known == set()


def test_rules_ask_for_codes_that_the_service_answers():
    expressions = " ".join(rule["expr"] for rule in rules().values())
    asked = set(re.findall(r'\bcode="(\w+)"', expressions))
    assert asked
    assert asked - set(ERROR_CODES) == set()


def test_each_alert_is_seen_silent_and_seen_firing():
    shown = {
        (case["alertname"], bool(case["exp_alerts"]))
        for test in cases()
        for case in test["alert_rule_test"]
    }
    assert shown == {(alert, fires) for alert in rules() for fires in (False, True)}


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here: apt-get install prometheus")
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", "rules.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],
        ["test", "rules", "rules.test.yml"],
    ],
)
def test_prometheus_agrees(arguments):
    done = subprocess.run(
        [PROMTOOL, *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
