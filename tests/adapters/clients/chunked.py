"""Writes lines as Telegraf sends them: packed on the way, so in chunks of no known length."""

import http.client
import sys
import zlib
from urllib.parse import urlsplit

address, key, base_s, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def packed(lines):
    packer = zlib.compressobj(wbits=31)
    for line in lines:
        piece = packer.compress(line)
        if piece:
            yield piece
    yield packer.flush()


wire = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
headers = {
    "Authorization": f"Token {key}",
    "Content-Encoding": "gzip",
    "Content-Type": "text/plain; charset=utf-8",
    "User-Agent": "Telegraf/1.30",
}
for start in range(0, count, 1000):
    lines = (
        f"cpu,host=e{n % 10} value={n / 4} {base_s + n}000000000\n".encode()
        for n in range(start, start + 1000)
    )
    wire.request(
        "POST",
        "/api/v2/write?bucket=any&org=any",
        body=packed(lines),
        headers=headers,
        encode_chunked=True,
    )
    answer = wire.getresponse()
    assert (answer.status, answer.read()) == (204, b"")
