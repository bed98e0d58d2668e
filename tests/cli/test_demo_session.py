"""Requests of the demo to a service, and its words for an answer that is no JSON."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fleetcast.cli.demo.tour import HttpSession
from fleetcast.errors import OperatorError


class Proxy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_):
        pass


def test_an_answer_that_is_no_json_is_told_in_our_words():
    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        session = HttpSession(f"http://127.0.0.1:{server.server_port}", "key")
        with pytest.raises(OperatorError) as caught:
            session.get("/topology")
        session.close()
    assert str(caught.value) == "GET /topology did not answer in JSON"
