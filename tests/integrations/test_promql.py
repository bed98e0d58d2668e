"""PromQL of the service beside Prometheus: the same samples, drawn queries, the same answers.

`python -m tests.integrations.promql` draws more of them.
"""

from tests.integrations.programs import found, needs
from tests.integrations.promql.run import compared

QUERIES = 500


@needs("prometheus")
def test_drawn_queries_have_the_answers_of_prometheus(tmp_path):
    outcomes = compared(found("prometheus"), tmp_path, QUERIES, seed=1)
    assert outcomes.differences == []
    assert outcomes.counts["equal"] > QUERIES / 3
