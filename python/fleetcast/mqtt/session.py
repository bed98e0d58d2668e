"""A persistent session with the broker. Its messages are acknowledged by hand and in order."""

from __future__ import annotations

import logging
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from paho.mqtt.client import ConnectFlags, MQTTMessage
    from paho.mqtt.reasoncodes import ReasonCode

    from fleetcast.mqtt.settings import BrokerSettings

logger = logging.getLogger("fleetcast.mqtt")

_KEEPALIVE_SECONDS = 30
_RECONNECT_SECONDS = (1, 30)
_MESSAGE_BYTES = 512  # of a message without topic and payload: its objects and places in queues
_NEVER_SUBSCRIBED = "fleetcast/confirm"


@dataclass(frozen=True)
class Message:
    """A delivery. `packet` counts within its `session`; `again` is the broker's DUP flag.

    Sessions and connections are counted from the start of the bridge. The session that the broker
    kept from an earlier run is number 0.
    """

    topic: str
    payload: bytes
    packet: int
    again: bool
    session: int
    connection: int

    @property
    def held_bytes(self) -> int:
        """About how many bytes of memory the message takes."""
        return _MESSAGE_BYTES + len(self.topic) + len(self.payload)


class BrokerSession:
    """Subscribes to `filters` with QoS 1 and hands each message to `receive`, in a thread.

    The broker keeps the session while the bridge is away. At most `unacknowledged_max` messages are
    on their way at once.
    """

    def __init__(
        self,
        broker: BrokerSettings,
        password: str,
        filters: Sequence[str],
        receive: Callable[[Message], None],
        *,
        unacknowledged_max: int,
    ) -> None:
        self._filters = filters
        self._receive = receive
        self._lock = threading.Lock()
        self._session = 0
        self._connection = 0
        self._is_connected = False
        # Calls to make once the broker has answered the packet with this number.
        self._unconfirmed: dict[int, Callable[[], None]] = {}
        # Packets received and not acknowledged: True if only a missing connection prevented that.
        self._open: dict[int, bool] = {}
        self._client = _client(broker, password)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = _on_connect_fail
        self._client.on_disconnect = self._on_disconnect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_unsubscribe = self._on_unsubscribe
        self._client.on_message = self._on_message
        wanted = Properties(PacketTypes.CONNECT)
        wanted.SessionExpiryInterval = broker.session_seconds
        wanted.ReceiveMaximum = unacknowledged_max
        self._client.connect_async(
            broker.host,
            broker.port,
            keepalive=_KEEPALIVE_SECONDS,
            clean_start=False,
            properties=wanted,
        )

    def start(self) -> None:
        """Connects, and connects again whenever the connection is lost."""
        self._client.loop_start()

    def stop(self) -> None:
        """Ends the connection; the broker keeps the session."""
        self._client.disconnect()
        self._client.loop_stop()

    def acknowledge(
        self, messages: Iterable[Message], confirmed: Callable[[], None] | None = None
    ) -> None:
        """Tells the broker that it need not keep `messages`. The caller keeps the order.

        A thread of the session calls `confirmed` once the broker has the acknowledgments. It does
        not call `confirmed` if the connection ends before.
        """
        with self._lock:
            for message in messages:
                if message.session != self._session or message.packet not in self._open:
                    continue
                if self._is_connected:
                    del self._open[message.packet]
                    self._client.ack(message.packet, 1)
                else:
                    self._open[message.packet] = True  # acknowledged when the message comes again
            if confirmed is not None and self._is_connected:
                # The broker does not answer an acknowledgment, so an unsubscription asks for an
                # answer.
                _, packet = self._client.unsubscribe(_NEVER_SUBSCRIBED)
                if packet is not None:
                    self._unconfirmed[packet] = confirmed

    def _on_connect(
        self,
        client: Client,
        _data: object,
        flags: ConnectFlags,
        reason: ReasonCode,
        _properties: object,
    ) -> None:
        if reason.is_failure:
            logger.error("the broker refuses", extra={"reason": str(reason)})
            return
        with self._lock:
            if not flags.session_present:
                self._session += 1
                self._open.clear()
            self._connection += 1
            self._is_connected = True
        logger.info("connected", extra={"session_present": flags.session_present})
        # Retained messages come once, not at each connection.
        options = SubscribeOptions(qos=1, retainHandling=1)
        client.subscribe([(name, options) for name in self._filters])

    def _on_disconnect(
        self,
        _client: Client,
        _data: object,
        _flags: object,
        reason: ReasonCode,
        _properties: object,
    ) -> None:
        with self._lock:
            self._is_connected = False
            self._unconfirmed.clear()
        logger.warning("disconnected", extra={"reason": str(reason)})

    def _on_subscribe(
        self,
        _client: Client,
        _data: object,
        _mid: int,
        reasons: list[ReasonCode],
        _properties: object,
    ) -> None:
        for name, reason in zip(self._filters, reasons, strict=False):
            if reason.is_failure or reason.value < 1:
                extra = {"filter": name, "reason": str(reason)}
                logger.error("no subscription with QoS 1", extra=extra)

    def _on_unsubscribe(
        self,
        _client: Client,
        _data: object,
        packet: int,
        _reasons: list[ReasonCode],
        _properties: object,
    ) -> None:
        with self._lock:
            confirmed = self._unconfirmed.pop(packet, None)
        if confirmed is not None:
            confirmed()

    def _on_message(self, client: Client, _data: object, message: MQTTMessage) -> None:
        if message.qos != 1:  # published with QoS 0: no packet, and the broker does not keep it
            payload = bytes(message.payload)
            self._receive(Message(message.topic, payload, 0, again=False, session=0, connection=0))
            return
        with self._lock:
            session, connection = self._session, self._connection
            if message.dup and message.mid in self._open:
                if self._open[message.mid]:
                    del self._open[message.mid]
                    client.ack(message.mid, 1)
                return
            self._open[message.mid] = False
        payload = bytes(message.payload)
        self._receive(
            Message(message.topic, payload, message.mid, message.dup, session, connection)
        )


def _on_connect_fail(_client: Client, _data: object) -> None:
    # The client calls this function while it handles the error, and does not pass the error on.
    logger.warning("no connection to the broker", extra={"reason": str(sys.exception())})


def _client(broker: BrokerSettings, password: str) -> Client:
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=broker.client_id,
        protocol=MQTTv5,
        manual_ack=True,
    )
    if broker.username:
        client.username_pw_set(broker.username, password)
    if broker.tls:
        files: dict[str, Any] = {
            "ca_certs": broker.authority or None,
            "certfile": broker.certificate or None,
            "keyfile": broker.private_key or None,
        }
        client.tls_set(**files)
    low, high = _RECONNECT_SECONDS
    client.reconnect_delay_set(low, high)
    return client
