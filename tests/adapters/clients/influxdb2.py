"""Writes rows by InfluxDB's client for version 2, packed, a thousand in a batch."""

import sys

from influxdb_client import InfluxDBClient, WriteOptions
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.domain.write_precision import WritePrecision
from influxdb_client.rest import ApiException

address, key, base_s, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
failures = []
told = ""
with InfluxDBClient(url=address, token=key, org="any", enable_gzip=True) as client:
    assert client.ping()
    assert client.health().status == "pass"
    options = WriteOptions(batch_size=1000)
    with client.write_api(options, error_callback=lambda *all_: failures.append(all_)) as writes:
        for n in range(count):
            record = {
                "measurement": "cpu",
                "tags": {"host": f"e{n % 10}"},
                "fields": {"value": n / 4},
                "time": base_s + n,
            }
            writes.write("any", record=record, write_precision=WritePrecision.S)
    lines = "cpu value=x\ncpu,host=last value=0.5"
    try:
        client.write_api(SYNCHRONOUS).write("any", record=lines)
    except ApiException as error:
        told = str(error)
    assert "line 1: fields.cpu_value" in told
assert failures == [], failures
