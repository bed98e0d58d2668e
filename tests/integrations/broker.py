"""Debian's mosquitto, a bridge, a service, and a device that publishes; each may be killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from fleetcast.bench.processes import free_port
from fleetcast.engine import format_time
from fleetcast.installation.directory import DataDirectory
from fleetcast.installation.opening import opened
from fleetcast.security.certificate import issue_certificate
from tests.integrations.programs import Program, found
from tests.service.service import prepare, start
from tests.waiting import until

BASE_S = int(time.time()) - 20_000
_SENT = re.compile(r"Sending PUBLISH to bridge \(d\d, q1, r0, m(\d+), '([^']*)'")
_ACKNOWLEDGED = re.compile(r"Received PUBACK from bridge \(Mid: (\d+)")
DEADLINE_S = 2


class Broker(Program):
    """mosquitto; what the bridge acknowledged is in its log."""

    def __init__(self, folder, lines=""):
        port = free_port()
        file = folder / "mosquitto.conf"
        file.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\nlog_type all\n"
            f"persistence true\npersistence_location {folder}/\nautosave_on_changes true\n"
            f"autosave_interval 1\nmax_queued_messages 0\n{lines}"
        )
        log = folder / "mosquitto.log"
        super().__init__([found("mosquitto"), "-c", str(file)], log, port=port)
        self.for_bridge = {"url": f"mqtt://127.0.0.1:{port}"}

    def acknowledged(self) -> set[str]:
        """Topics of messages for which the bridge has sent an acknowledgment."""
        sent, done = {}, set()
        for line in self.text().splitlines():
            if at := _SENT.search(line):
                sent[at[1]] = at[2]
            elif at := _ACKNOWLEDGED.search(line):
                done.add(sent[at[1]])
        return done


class MuffledBroker(Broker):
    """A broker that a bridge reaches by a line on which what the bridge says may be lost."""

    def __init__(self, folder):
        super().__init__(folder)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.for_bridge = {"url": f"mqtt://127.0.0.1:{self._listening.getsockname()[1]}"}
        self.loses, self.lost = False, 0
        self._ends = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                bridge = self._listening.accept()[0]
                broker = socket.create_connection(("127.0.0.1", self.port))
                self._ends = [bridge, broker]
                for source, target in ((bridge, broker), (broker, bridge)):
                    passing = threading.Thread(target=self._pass_on, args=(source, target, bridge))
                    self._threads.append(passing)
                    passing.start()

    def _pass_on(self, source, target, bridge):
        with contextlib.suppress(OSError):
            while said := source.recv(65_536):
                if self.loses and source is bridge:
                    self.lost += len(said)
                else:
                    target.sendall(said)
        self._shut(source, target)
        source.close()

    def _shut(self, *ends):
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Ends the connection of the bridge; the next one loses nothing."""
        self._shut(*self._ends)
        self.loses = False

    def stop(self):
        self._shut(self._listening, *self._ends)
        for thread in self._threads:
            thread.join()
        self._listening.close()
        return super().stop()


class TlsBroker(Broker):
    """Devices are heard as they are, a bridge by TLS and with a certificate of its own."""

    def __init__(self, folder):
        issue_certificate(folder / "tls", bytes(32), ["127.0.0.1"])
        pair = _pair(folder / "bridge.pem", folder / "bridge.key")
        tls = free_port()
        super().__init__(
            folder,
            f"listener {tls} 127.0.0.1\ncertfile {folder}/tls/server.pem\n"
            f"keyfile {folder}/tls/server.key\ncafile {pair['certificate']}\n"
            "require_certificate true\n",
        )
        self.for_bridge = {
            "url": f"mqtts://127.0.0.1:{tls}",
            "authority": f"{folder}/tls/ca.pem",
            **pair,
        }


def _pair(certificate, private_key) -> dict[str, str]:
    """Files of a new key, and of a certificate that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bridge")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    form = serialization.Encoding.PEM
    certificate.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(form))
    secret = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    private_key.write_bytes(secret)
    return {"certificate": str(certificate), "private_key": str(private_key)}


class Storing:
    """The service on a fixed port, with deadlines that end soon."""

    def __init__(self, folder):
        self.data = folder / "data"
        self.key = prepare(self.data)
        self.port = free_port()
        self.running = None

    def start(self):
        deadline = ("--set", f"http.request_deadline_seconds={DEADLINE_S}")
        self.running = start(self.data, self.key, "--http", f"127.0.0.1:{self.port}", *deadline)
        return self

    def count(self) -> int:
        """Records stored by now."""
        with contextlib.suppress(OSError):
            return self.running.get("/account/state").json["usage"]["records_accepted_total"]
        return 0

    def rows(self):
        """How often each entity and time is stored."""
        rows = Counter()
        with opened(DataDirectory(self.data), os.environ) as installation:
            (tenant,) = installation.tenants.all()
            plane = installation.engine.plane(tenant.account_id, tenant.name)
            for batch in plane.scan(0, 2**63 - 1):
                while lines := batch.json_lines():
                    for row in map(json.loads, lines.splitlines()):
                        rows[row["tags"]["entity_id"], row["time"]] += 1
        return rows


def lines(settings) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def bridge(folder, broker, service, **spool) -> Program:
    settings = folder / "bridge.toml"
    settings.write_text(
        f'[broker]\nclient_id = "bridge"\n{lines(broker.for_bridge)}'
        '[[topic]]\ntemplate = "fleet/{entity_id}/{measurement}"\n'
        f'[service]\nurl = "http://127.0.0.1:{service.port}"\n'
        f"settle_seconds = {DEADLINE_S + 1}\n[batch]\nrecords = 100\nseconds = 0.1\n"
        f'[spool]\nfolder = "spool"\n{lines(spool)}'
    )
    command = [sys.executable, "-m", "fleetcast", "mqtt", str(settings)]
    environment = {**os.environ, "FLEETCAST_MQTT_KEY": service.key}
    return Program(command, folder / "bridge.log", env=environment)


def topic_of(number) -> str:
    return f"fleet/e{number}/link"


def payload_of(number) -> bytes:
    time_text = format_time((BASE_S + number) * 10**9)
    return json.dumps({"time": time_text, "snr_db": number / 4}).encode()


def row_of(number) -> tuple[str, str]:
    return f"e{number}", format_time((BASE_S + number) * 10**9)


class Device:
    """A publisher with QoS 1, which sends again what the broker has not answered."""

    def __init__(self, broker):
        self._client = Client(CallbackAPIVersion.VERSION2, client_id="device", protocol=MQTTv5)
        self._client.reconnect_delay_set(1, 1)
        self._client.max_inflight_messages_set(200)
        self._client.connect_async("127.0.0.1", broker.port, clean_start=False)
        self._answered = set()
        self._client.on_publish = lambda _client, _data, packet, *_: self._answered.add(packet)
        self._client.loop_start()
        until(self._client.is_connected)

    def publish(self, numbers):
        """Returns when the broker has answered for each."""
        self.send([(topic_of(number), payload_of(number)) for number in numbers])

    def send(self, messages):
        packets = {self._client.publish(*message, qos=1).mid for message in messages}
        until(lambda: packets <= self._answered)

    def close(self):
        self._client.disconnect()
        self._client.loop_stop()
