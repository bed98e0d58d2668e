"""Writes rows by QuestDB's client over HTTP."""

import sys
from urllib.parse import urlsplit

from questdb.ingress import Sender, TimestampNanos

address, key, base_s, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with Sender.from_conf(f"http::addr={urlsplit(address).netloc};token={key};") as sender:
    for n in range(count):
        sender.row(
            "cpu",
            symbols={"host": f"e{n % 10}"},
            columns={"value": n / 4},
            at=TimestampNanos((base_s + n) * 10**9),
        )
