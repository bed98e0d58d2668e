"""Writes data points by the SDK of OpenTelemetry: a thousand gauges, collected again and again."""

import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

address, key, count = sys.argv[1], sys.argv[2], int(sys.argv[4])
ENTITIES = 1000
outcomes = []


class Noted(OTLPMetricExporter):
    def export(self, *arguments, **options):
        outcomes.append(super().export(*arguments, **options))
        return outcomes[-1]


exporter = Noted(
    endpoint=f"{address}/v1/metrics",
    headers={"authorization": f"Bearer {key}"},
    compression=Compression.Gzip,
)
reader = PeriodicExportingMetricReader(exporter, export_interval_millis=10**9)
resource = Resource.create({"service.name": "test"})
provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
gauge = provider.get_meter("test").create_gauge("value")
for start in range(0, count, ENTITIES):
    for n in range(start, start + ENTITIES):
        gauge.set(n / 4, {"host": f"e{n % ENTITIES}"})
    assert provider.force_flush()
assert set(outcomes) == {MetricExportResult.SUCCESS}, outcomes
assert len(outcomes) == count // ENTITIES
