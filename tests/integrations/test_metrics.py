"""A Prometheus that scrapes the private listener, and promtool's opinion of the text."""

import subprocess
from urllib.parse import urlsplit

from tests.integrations.programs import found, needs
from tests.integrations.promql.servers import prometheus
from tests.service.service import ask, running
from tests.waiting import until

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: fleetcast
    static_configs: [targets: ["{target}"]]
"""


@needs("prometheus", "promtool")
def test_prometheus_scrapes_what_it_negotiates(tmp_path):
    (tmp_path / "peer").mkdir()
    with running(tmp_path / "data", "--admin", "127.0.0.1:0") as service:
        assert service.get("/account/state").status == 200
        config = CONFIG.format(target=urlsplit(service.ready["admin"]).netloc)
        with prometheus(found("prometheus"), tmp_path / "peer", config) as peer:

            def value(query):
                result = peer.ask("/api/v1/query", query=query)["data"]["result"]
                return [float(each["value"][1]) for each in result]

            until(lambda: value("up") == [1])
            until(lambda: value("sum(fleetcast_http_requests_total)") != [])
            assert value("process_cpu_seconds_total")[0] > 0
            assert value("process_resident_memory_bytes") == value(
                "fleetcast_resident_memory_bytes"
            )
            assert value("process_open_fds < process_max_fds") != []
            # As OpenMetrics writes it; in the plain text the bound is 1.
            assert value('fleetcast_commit_seconds_bucket{le="1.0"}') != []
        checked = subprocess.run(
            [found("promtool"), "check", "metrics"],
            input=ask(service, "/metrics").body,
            capture_output=True,
            check=False,
        )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
