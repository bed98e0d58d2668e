"""The program behind the worker tests: a small WSGI app under the real server.

Arguments: the descriptor of a listening socket, and the limits and gunicorn settings as JSON.
"""

import json
import os
import socket
import sys
from contextlib import contextmanager
from urllib.parse import parse_qs

from fleetcast.http.server.arbiter import HttpServer
from fleetcast.http.server.limits import ConnectionLimits


def application(environ, start_response):
    key = environ.get("HTTP_X_API_KEY", environ.get("HTTP_AUTHORIZATION"))
    # A key is the name of the tenant, and which of its keys it is.
    within = environ["fleetcast.claim"](key.partition("-")[0]) if key else True
    if not within or environ["fleetcast.over_share"]:
        start_response("503 Service Unavailable", [])
        return [b"too much"]
    query = parse_qs(environ["QUERY_STRING"])
    path = environ["PATH_INFO"]
    if path == "/fail":
        message = "secret"
        raise RuntimeError(message)
    if path == "/split":
        start_response("200 OK", [("X-Name", "a\r\nb: c")])
        return [b""]
    if path == "/nothing":
        start_response("204 No Content", [])
        return []
    if path == "/hold":  # tells the test that it has begun, and waits for its leave
        with socket.create_connection(("127.0.0.1", int(query["port"][0]))) as gate:
            gate.sendall(b"in")
            gate.recv(1)
    if path == "/large":
        content = b"x" * int(query["bytes"][0])
    elif environ["fleetcast.body_due"]:
        start_response("100 Continue", [])
        return []
    else:
        body = bytes(environ["fleetcast.body"])
        names = ("REQUEST_METHOD", "PATH_INFO", "RAW_PATH", "QUERY_STRING", "SERVER_PROTOCOL")
        names += ("CONTENT_LENGTH", "CONTENT_TYPE")
        names += tuple(name for name in environ if name.startswith("HTTP_"))
        seen = {name: environ[name] for name in names if name in environ}
        content = json.dumps({**seen, "body": body[:64].decode(), "bytes": len(body)}).encode()
    start_response("200 OK", [("Content-Length", str(len(content)))])
    return [content]


@contextmanager
def serving():
    os.write(1, b"opened\n")
    yield application
    os.write(1, b"closed\n")


def main():
    fd, limits, settings = int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    bounds = ConnectionLimits(**limits)
    HttpServer(
        serving,
        limits=lambda: bounds,
        settings={"bind": f"fd://{fd}", **settings},
        key_fields=("X-Api-Key", "Authorization"),
    ).run()


if __name__ == "__main__":
    main()
