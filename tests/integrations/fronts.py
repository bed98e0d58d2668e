"""nginx and HAProxy as `integrations/` has them, with ports and files of a test.

Their certificate is from an authority that the service knows nothing of, as a public one.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time

from fleetcast.bench.processes import free_port
from fleetcast.security.certificate import issue_certificate
from tests.integrations.programs import Program, found
from tests.service.service import Answer, prepare, start
from tests.tidy.files import ROOT
from tests.waiting import PATIENCE_SECONDS

INTEGRATIONS = ROOT / "integrations"
DEADLINE_S = 3
RATE = 5
CONSOLE_HOST = "console.example.com"


class Behind:
    """A service that trusts the front, and the front's certificate."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.data = folder / "data"
        self.key = prepare(self.data)
        self.tls = self.data / "tls"
        self.public = folder / "public"
        issue_certificate(self.public, bytes(32), ["localhost", CONSOLE_HOST])
        self.port, self.grpc, self.admin = free_port(), free_port(), free_port()
        self.options = options
        self.buffers = False
        """True of a front that passes on complete bodies alone."""

    def start(self):
        addresses = {"http": self.port, "grpc": self.grpc, "admin": self.admin}
        given = [word for name, port in addresses.items() for word in (f"--{name}", at(port))]
        settings = (
            'http.trusted_proxies=["127.0.0.1"]',
            f'admin.hosts=["{CONSOLE_HOST}"]',
            f"http.request_deadline_seconds={DEADLINE_S}",
            *self.options,
        )
        given += [word for setting in settings for word in ("--set", setting)]
        self.service = start(self.data, self.key, *given)
        return self

    def stop(self):
        self.service.stop()


def at(port) -> str:
    return f"127.0.0.1:{port}"


def replaced(file, values) -> str:
    """The text of a file that comes with the program; each of `values` must be in it."""
    text = (INTEGRATIONS / file).read_text()
    for old, new in values.items():
        assert old in text, old
        text = text.replace(old, str(new))
    return text


def nginx(behind, port) -> Program:
    behind.buffers = True
    files = {
        "listen 443 ": f"listen {at(port)} ",
        "/etc/fleetcast/front.pem": behind.public / "server.pem",
        "/etc/fleetcast/front.key": behind.public / "server.key",
    }
    services = {
        "127.0.0.1:8080": at(behind.port),
        "127.0.0.1:8443": at(behind.grpc),
        "/etc/fleetcast/ca.pem": behind.tls / "ca.pem",
    }
    for name, values in {
        "fleetcast.conf": files | services,
        "console.conf": files | {"127.0.0.1:9090": at(behind.admin)},
    }.items():
        (behind.folder / name).write_text(replaced(f"nginx/{name}", values))
    folders = "".join(
        f"{kind}_temp_path {behind.folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = behind.folder / "nginx.conf"
    main.write_text(
        f"daemon off;\nuser root;\nmaster_process off;\npid {behind.folder}/nginx.pid;\n"
        f"error_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}"
        f"include {behind.folder}/fleetcast.conf;\ninclude {behind.folder}/console.conf;\n}}\n"
    )
    command = [found("nginx"), "-p", str(behind.folder), "-c", str(main)]
    return Program(command, behind.folder / "nginx.log", port=port)


def haproxy(behind, port) -> Program:
    pair = behind.folder / "front.pem"
    files = ("server.pem", "server.key")
    pair.write_text("".join((behind.public / file).read_text() for file in files))
    file = behind.folder / "haproxy.cfg"
    file.write_text(
        replaced(
            "haproxy/haproxy.cfg",
            {
                "bind :443 ": f"bind {at(port)} ",
                "127.0.0.1:8080": at(behind.port),
                "127.0.0.1:8443": at(behind.grpc),
                "port 9090": f"port {behind.admin}",
                "/etc/fleetcast/front.pem": pair,
                "/etc/fleetcast/ca.pem": behind.tls / "ca.pem",
            },
        )
    )
    command = [found("haproxy"), "-db", "-f", str(file)]
    return Program(command, behind.folder / "haproxy.log", port=port)


class Front:
    """A client of the front, which trusts its authority."""

    def __init__(self, behind, port):
        self.behind, self.port = behind, port
        self.context = ssl.create_default_context(cafile=str(behind.public / "ca.pem"))

    def connect(self, source="127.0.0.1"):
        return http.client.HTTPSConnection(
            "localhost",
            self.port,
            timeout=PATIENCE_SECONDS,
            context=self.context,
            source_address=(source, 0),
        )

    def ask(self, method, path, body=None, wire=None, source="127.0.0.1", **headers):
        connection = wire or self.connect(source)
        headers = {"x-api-key": self.behind.key, **headers}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if wire is None:
            connection.close()
        return answer

    def write(self, records, **options):
        body = records if isinstance(records, bytes) else json.dumps(records).encode()
        return self.ask(
            "POST", "/telemetry", body, **{"Content-Type": "application/json"}, **options
        )

    def raw(self):
        """A connection for bytes that no client would send."""
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)
        return self.context.wrap_socket(plain, server_hostname="localhost")


def record(number, entity="l1"):
    at_s = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 600 + number))
    return {
        "measurement": "link",
        "time": at_s,
        "tags": {"entity_id": entity},
        "fields": {"snr_db": number / 4},
    }
