"""F1, F8, A22: workers die under full load; clients lose connections, and nothing else."""

from __future__ import annotations

from tests.waiting import until

from .load import READERS, WRITERS, Writer, kill_a_worker, load, verdict
from .service import running

HISTORY = ("--set", "limits.history_horizon_days=3650")
KILLS = 2
BATCHES = 20


def test_workers_killed_under_load_lose_nothing_acknowledged(tmp_path):
    with running(tmp_path / "data", "--workers", "2", *HISTORY) as service:
        with load(service) as clients:
            writers = [client for client in clients if isinstance(client, Writer)]

            def written(count):
                until(lambda: min(writer.number for writer in writers) >= count)

            kills = []
            for turn in range(KILLS):
                written((turn + 1) * BATCHES)
                kills.append(kill_a_worker(service, turn))
            written((KILLS + 1) * BATCHES)
        counts = verdict(service, clients, kills)
    assert counts["of them lost"] == 0
    assert counts["of them stored twice"] == 0
    assert counts["answers other than 200 and 202"] == 0
    assert counts["records stored"] == counts["records that these batches have"]
    assert counts["batches acknowledged"] >= WRITERS * BATCHES
    assert counts["connections broken"] <= KILLS * (WRITERS + READERS)
    assert counts["reads answered"] > 0
