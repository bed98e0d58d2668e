"""PromQL of the service beside Prometheus: the same samples, drawn queries, the same answers.

`python -m tests.integrations.promql` draws more of them.
"""

import json
import time
from contextlib import closing

from tests.adapters.messages import field, number, snappy, time_series
from tests.integrations.programs import found, needs
from tests.integrations.promql import chunks
from tests.integrations.promql.run import compared
from tests.integrations.promql.samples import STEP_MS, fleet, messages
from tests.integrations.promql.servers import LISTENER, Server, both, now_ms, prometheus
from tests.service.service import running

QUERIES = 500


@needs("prometheus")
def test_drawn_queries_have_the_answers_of_prometheus(tmp_path):
    outcomes = compared(found("prometheus"), tmp_path, QUERIES, seed=1)
    assert outcomes.differences == []
    assert outcomes.counts["equal"] > QUERIES / 3


@needs("prometheus")
def test_a_streamed_read_has_the_samples_of_that_of_prometheus(tmp_path):
    start_ms = (now_ms() - 400 * STEP_MS) // STEP_MS * STEP_MS
    times = number(1, start_ms + 100 * STEP_MS) + number(2, start_ms + 300 * STEP_MS)
    conditions = (
        field(3, field(2, "__name__") + field(3, "temperature")),
        field(3, number(1, 2) + field(2, "__name__") + field(3, "requests.*|tiny|huge")),
    )
    streamed = number(2, 1)
    question = b"".join(field(1, times + each) for each in conditions) + streamed
    sent = messages(fleet(3, start_ms, 360), start_ms, 360)
    with both(found("prometheus"), tmp_path, sent) as servers:
        ours, theirs = (chunks.series(each.read(snappy(question))) for each in servers)
    assert ours == theirs
    assert len(ours) > 20
    assert max(map(len, ours.values())) > chunks.CHUNK_SAMPLES


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
