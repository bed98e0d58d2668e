"""Verdicts rest on all that was looked at."""

from dataclasses import replace

import pytest
from doubles import client
from falcon.testing import create_environ

from fleetcast.config import Settings
from fleetcast.http.pipeline import DECIDING_FIELDS

BODY = b'[{"measurement": "link"}]'
# The front looks at it itself, within the bound that comes with a verdict.
FRAMING = {"CONTENT_LENGTH"}


class Recorded(dict):
    """A WSGI environment that knows what was asked of it."""

    def __init__(self, values):
        super().__init__(values)
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)

    def __contains__(self, name):
        self.asked.add(name)
        return super().__contains__(name)


def variable(field):
    name = field.upper().replace("-", "_")
    return name if name == "CONTENT_TYPE" else f"HTTP_{name}"


@pytest.mark.parametrize("origin", ["https://console.example", "https://other.example"])
def test_no_other_field_decides_about_a_write(origin):
    """One that did could change, and the verdict would stand."""
    headers = {"x-api-key": "good", "content-type": "application/json", "origin": origin}
    headers |= {"x-forwarded-for": "192.0.2.1", "accept": "text/html", "cookie": "a=b"}
    environ = Recorded(
        create_environ("/telemetry", method="POST", headers=headers, body=BODY.decode())
    )
    statuses = []
    settings = replace(
        Settings(),
        http=replace(
            Settings().http,
            cors_origins=("https://console.example",),
            trusted_proxies=("127.0.0.1",),
        ),
    )
    app = client(settings=settings).app
    list(app(environ, lambda status, _fields, _error=None: statuses.append(status)))
    assert statuses == ["202 Accepted"]
    fields = {name for name in environ.asked if name.startswith(("HTTP_", "CONTENT_"))}
    assert fields - FRAMING == {variable(field) for field in DECIDING_FIELDS}
