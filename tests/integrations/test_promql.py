"""PromQL of the service beside Prometheus: the same samples, drawn queries, the same answers.

`python -m tests.integrations.promql` draws more of them.
"""

import json
import time
from contextlib import closing

from tests.adapters.messages import snappy, time_series
from tests.integrations.programs import found, needs
from tests.integrations.promql.run import compared
from tests.integrations.promql.servers import LISTENER, Server, prometheus
from tests.service.service import running

QUERIES = 500


@needs("prometheus")
def test_drawn_queries_have_the_answers_of_prometheus(tmp_path):
    outcomes = compared(found("prometheus"), tmp_path, QUERIES, seed=1)
    assert outcomes.differences == []
    assert outcomes.counts["equal"] > QUERIES / 3


@needs("prometheus")
def test_prometheus_reads_samples_of_the_service(tmp_path):
    """It has none of its own, so its rules and queries see only what remote read answers."""
    now_s = int(time.time())
    samples = [(float(n % 7), (now_s - 600 + 10 * n) * 1000) for n in range(60)]
    with running(tmp_path / "data", *LISTENER) as service:
        address, key = service.ready["adapters"], service.key
        with closing(Server(address, {"x-api-key": key}, service.process.pid)) as ours:
            for job in ("a", "b"):
                labels = {"__name__": "load", "instance": "n:1", "job": job}
                ours.write(snappy(time_series(labels, samples)))
            config = {
                "url": f"{address}/api/v1/read",
                "read_recent": True,
                "authorization": {"credentials": key},
            }
            with prometheus(
                found("prometheus"), tmp_path, json.dumps({"remote_read": [config]})
            ) as theirs:
                for question in ("load", 'sum by (job) (rate(load{job=~"a|c"}[5m]))'):
                    asked = {"query": question, "time": str(now_s)}
                    answers = [each.ask("/api/v1/query", **asked) for each in (theirs, ours)]
                    assert answers[0]["data"] == answers[1]["data"]
                    assert answers[0]["data"]["result"]
