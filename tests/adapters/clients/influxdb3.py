"""Writes rows by InfluxDB's client for version 3, a thousand in a call."""

import sys

from influxdb_client_3 import InfluxDBClient3, InfluxDBError, Point

address, key, base_s, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
told = ""
with InfluxDBClient3(host=address, token=key, database="any") as client:
    for start in range(0, count, 1000):
        points = [
            Point("cpu").tag("host", f"e{n % 10}").field("value", n / 4).time((base_s + n) * 10**9)
            for n in range(start, start + 1000)
        ]
        client.write(points)
    try:
        client.write("cpu value=x\ncpu,host=last value=0.5")
    except InfluxDBError as error:
        told = str(error)
assert "fields.cpu_value" in told, told
