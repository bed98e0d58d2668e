"""A client that says exactly the bytes it is told to, and the server process it talks to."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import PATIENCE_SECONDS


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    def __init__(self, port, *, buffer_bytes=None):
        self.sock = socket.socket()
        self.sock.settimeout(PATIENCE_SECONDS)
        if buffer_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.sock.connect(("127.0.0.1", port))
        self._held = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)
        return self

    def response(self, *, head_only=False):
        head, _, self._held = self._until(b"\r\n\r\n").partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        assert len(headers) == len(lines), "a header came twice"
        code = int(status.split()[1])
        size = 0 if head_only or code < 200 else int(headers.get("Content-Length", 0))
        held = bytearray(self._held)
        while len(held) < size:
            data = self.sock.recv(1_048_576)
            assert data, "the body ends early"
            held += data
        self._held = bytes(held[size:])
        return Response(code, headers, bytes(held[:size]))

    def rest(self):
        """Everything up to the end of the connection."""
        data = self._held
        try:
            while more := self.sock.recv(65536):
                data += more
        except ConnectionResetError:
            pass
        return data

    def _until(self, mark):
        while mark not in self._held:
            data = self.sock.recv(65536)
            assert data, f"closed after {self._held!r}"
            self._held += data
        return self._held


class Server:
    def __init__(self, process, port):
        self.process = process
        self.port = port

    def client(self, **kwargs):
        return Client(self.port, **kwargs)

    def ask(self, data, **kwargs):
        with self.client() as client:
            return client.send(data).response(**kwargs)

    def stop(self):
        """SIGTERM; the exit status and what it had printed."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err


@contextmanager
def serve(*, limits=None, workers=1, threads=2):
    """A server of `served.application` on a port that the system chose."""
    settings = {"workers": workers, "threads": threads}
    source = str(Path(__file__).parents[2] / "python")
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        fd = listener.fileno()
        process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("served.py")),
                str(fd),
                json.dumps(limits or {}),
                json.dumps(settings),
            ],
            pass_fds=[fd],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        server = Server(process, listener.getsockname()[1])
    try:
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)
