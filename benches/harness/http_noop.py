"""A WSGI handler that reads the body, or returns a constant, on the service's own worker class.

The service without keys, parsing and a store. Arguments: the descriptor of a
listening socket, workers, threads.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits


def application(environ, start_response):
    if environ["fleetcast.body_due"]:
        start_response("100 Continue", [])
        return []
    content = b'{"bytes":%d}' % len(environ["fleetcast.body"])
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
    start_response("200 OK" if environ["REQUEST_METHOD"] == "GET" else "202 Accepted", headers)
    return [content]


@contextmanager
def serving():
    print("ready", flush=True)
    yield application


def main():
    fd, workers, threads = sys.argv[1:]
    settings = {"bind": f"fd://{fd}", "workers": int(workers), "threads": int(threads)}
    HttpServer(serving, limits=ConnectionLimits, settings=settings).run()


if __name__ == "__main__":
    main()
