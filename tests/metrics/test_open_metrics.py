"""Metrics as OpenMetrics 1.0.0, and the clients that get them so."""

import pytest

from fleetcast.metrics.exposition import OPEN_METRICS_TYPE, TEXT_TYPE, exposition
from fleetcast.metrics.negotiation import accepted_type

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def test_a_text_of_open_metrics():
    values = {
        'fleetcast_records_accepted_total{tenant="a"}': 5,
        "fleetcast_http_connections": 2,
        'fleetcast_commit_seconds_bucket{le="1"}': 2,
        "fleetcast_commit_seconds_sum": 500_000_000,
        "process_cpu_seconds_total": 1_250_000_000,
    }
    text = exposition(values, kind=OPEN_METRICS_TYPE)
    lines = text.splitlines()
    assert text.endswith("\n# EOF\n")
    at = lines.index("# TYPE fleetcast_records_accepted counter")
    assert lines[at - 1] == "# HELP fleetcast_records_accepted Records accepted."
    assert lines[at + 1] == 'fleetcast_records_accepted_total{tenant="a"} 5'
    assert "# TYPE fleetcast_http_connections gauge" in lines
    assert "# TYPE process_cpu_seconds counter" in lines
    assert "process_cpu_seconds_total 1.25" in lines
    bounds = [line for line in lines if line.startswith("fleetcast_commit_seconds_bucket")]
    assert bounds[0] == 'fleetcast_commit_seconds_bucket{le="0.0005"} 0'
    assert bounds[-5:] == [
        'fleetcast_commit_seconds_bucket{le="2.5"} 2',
        'fleetcast_commit_seconds_bucket{le="5.0"} 2',
        'fleetcast_commit_seconds_bucket{le="10.0"} 2',
        'fleetcast_commit_seconds_bucket{le="30.0"} 2',
        'fleetcast_commit_seconds_bucket{le="+Inf"} 2',
    ]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (PROMETHEUS, OPEN_METRICS_TYPE),
        (PROMETHEUS_3, OPEN_METRICS_TYPE),
        ("application/openmetrics-text", OPEN_METRICS_TYPE),
        ("Application/OpenMetrics-Text; Version=1.0.0", OPEN_METRICS_TYPE),
        ("application/openmetrics-text;q=0.5,text/plain", TEXT_TYPE),
        ("application/openmetrics-text;version=2.0.0", TEXT_TYPE),
        ("application/openmetrics-text;q=0", TEXT_TYPE),
        ("application/openmetrics-text;q=", TEXT_TYPE),
        ("text/plain;version=0.0.4", TEXT_TYPE),
        ("*/*", TEXT_TYPE),
        ("", TEXT_TYPE),
    ],
)
def test_a_client_gets_the_text_that_it_names(accept, kind):
    assert accepted_type(accept) == kind
