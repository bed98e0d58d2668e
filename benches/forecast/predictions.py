"""How long `GET /predictions` takes for 100 entities at all horizons, computed and cached.

    python -m benches.forecast.predictions [--requests 30]

A real service with two workers; a week of every link at a row a minute, or of every pool at a row
a window. Then the CPU time of a computed answer in this process, without HTTP: *features* are rows
read and features computed, *inference* is the run of the model.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import time

from benches.harness.measure import cpu_seconds
from benches.harness.paths import DATA
from benches.harness.servers import Getter, service
from fleetcast.config.sections import Forecast
from fleetcast.engine import Engine, ForecastQuestion, format_time
from fleetcast.forecast.families import ANSWERED, FAMILIES, MINUTE_NS
from fleetcast.forecast.model import Forecaster
from fleetcast.forecast.serving.embedded import EmbeddedPredictions
from fleetcast.forecast.serving.inputs import features_of
from fleetcast.forecast.serving.predictions import Predictions
from fleetcast.forecast.serving.releases import Releases
from fleetcast.metrics import Counters

FOLDER = DATA / "predictions"
ENTITIES = 100
FRESH_SECONDS = 1
TURNS = 25
STEPS = {"snr": MINUTE_NS, "demand": 15 * MINUTE_NS}
WEEK_NS = 7 * 1440 * MINUTE_NS


def rows(family, end_ns):
    """A week before `end_ns`, all entities at one instant after the other."""
    step_ns = STEPS[family.name]
    end_ns -= end_ns % step_ns
    for time_ns in range(end_ns - WEEK_NS - 4 * step_ns, end_ns, step_ns):
        angle = time_ns / (1440 * MINUTE_NS) * 2 * math.pi
        for entity in range(ENTITIES):
            level = math.sin(angle + entity) + math.sin(time_ns / step_ns * 1.7 + entity) / 8
            value = 12 + 3 * level if family.name == "snr" else 1e9 * (3 + level)
            yield {
                "measurement": family.measurement,
                "time": format_time(time_ns),
                "tags": {"entity_id": f"e{entity}"},
                "fields": {family.target: round(value, 3)},
            }


def fill(running, key, family):
    batch = []
    for row in rows(family, time.time_ns()):
        batch.append(row)
        if len(batch) == 1000:
            assert running.post(batch, key=key).status == 202
            batch.clear()
    if batch:
        assert running.post(batch, key=key).status == 202


def milliseconds(seconds):
    ordered = sorted(seconds)
    p99 = ordered[math.ceil(0.99 * len(ordered)) - 1]
    return f"p50 {statistics.median(ordered) * 1e3:7.2f} ms   p99 {p99 * 1e3:7.2f} ms"


def asked(getter, family, requests, pause_seconds):
    link_ids = [f"e{entity}" for entity in range(ENTITIES)]
    seconds = []
    for _ in range(requests):
        time.sleep(pause_seconds)
        seconds.append(getter.get("/predictions", link_ids=link_ids, model_family=family.name))
        document = json.loads(bytes(getter.body))
        assert len(document["items"]) == ENTITIES * 4, document["entity_errors"][:3]
    return seconds


def parts(family, account, master_key):
    """CPU microseconds an entity of a new answer without HTTP and of its parts, the least of all.

    The store is compacted, and the works take turns.
    """
    engine = Engine(FOLDER / "planes", master_key)
    plane = engine.plane(account, "bench")
    plane.compact(whole=True)
    store = EmbeddedPredictions(FOLDER / "parts", master_key)
    store.ensure()
    releases = Releases(store)
    releases.promote(family.name)
    settings = Forecast(fresh_seconds=0)  # no forecast is kept
    predictions = Predictions(store, releases, lambda: settings, Counters.alone())
    entity_ids = [f"e{entity}" for entity in range(ENTITIES)]
    asked = ForecastQuestion(ANSWERED[family.name], entity_ids)
    document = json.loads(predictions.answer(plane, account, asked))
    assert len(document["items"]) == ENTITIES * 4, document["entity_errors"][:3]
    forecaster = Forecaster(family)
    issued_ns = family.issued(time.time_ns())
    features = features_of(plane, family, entity_ids, issued_ns)
    works = {
        "answer": lambda: predictions.answer(plane, account, asked),
        "features": lambda: features_of(plane, family, entity_ids, issued_ns),
        "inference": lambda: forecaster.predict(features),
    }
    seconds = dict.fromkeys(works, math.inf)
    for _ in range(TURNS):
        for name, work in works.items():
            seconds[name] = min(seconds[name], cpu_seconds(work))
    store.close()
    engine.close()
    return {name: least / ENTITIES * 1e6 for name, least in seconds.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=30)
    requests = parser.parse_args().requests
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    key = service.prepare(FOLDER, "bench")
    options = ["--set", f"forecast.fresh_seconds={FRESH_SECONDS}"]
    running = service.start(FOLDER, key, *options)
    account = service.command(FOLDER, "tenant", "show", "bench")["account_id"]
    master_key = bytes.fromhex((FOLDER / "master.key").read_text().strip())
    try:
        for family in FAMILIES.values():
            fill(running, key, family)
            getter = Getter(running.address, key)
            asked(getter, family, 3, 0)  # loads libraries and models
            computed = asked(getter, family, requests, FRESH_SECONDS)
            cached = asked(getter, family, 1, FRESH_SECONDS) and asked(getter, family, 20, 0)
            print(f"{family.name:7} computed   {milliseconds(computed)}")
            print(f"{family.name:7} cached     {milliseconds(cached)}")
            getter.close()
    finally:
        running.stop()
    for family in FAMILIES.values():
        for name, microseconds in parts(family, account, master_key).items():
            print(f"{family.name:7} {name:10} CPU {microseconds:7.1f} us an entity")


if __name__ == "__main__":
    main()
