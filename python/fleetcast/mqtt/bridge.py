"""The bridge: collects messages into batches, spools and delivers them, acknowledges in order."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetcast.client import Client
from fleetcast.mqtt.delivery import Delivery, Stopped
from fleetcast.mqtt.messages import Parser
from fleetcast.mqtt.session import BrokerSession, Message
from fleetcast.mqtt.spool import MessageIdentity, MessageSpool
from fleetcast.mqtt.tally import BridgeTally
from fleetcast.mqtt.topics import Template

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleetcast.mqtt.settings import BridgeSettings

logger = logging.getLogger("fleetcast.mqtt")

_TALLY_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_BODY_BYTES_MAX = 900_000  # of payloads; below limits.body_bytes_max
_PACKETS_MAX = 65_535
# Bytes of messages that wait to be read. The broker keeps messages of QoS 1 until they are
# acknowledged. So only messages of QoS 0 can exceed the number that the bridge has asked for.
_UNREAD_BYTES_MAX = 16 * 1024 * 1024


@dataclass
class _Taken:
    """Messages of one batch, and the identities that hold until the broker's confirmation."""

    messages: list[Message] = field(default_factory=list)
    untimed: set[MessageIdentity] = field(default_factory=set)


class Bridge:
    """A bridge from one broker to one service.

    `run` returns after `stop`, and raises the error that ended the bridge.
    """

    def __init__(self, settings: BridgeSettings) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        # Holds messages. Also holds sets of messages without times, once the broker has their
        # acknowledgments, in the order of the broker's confirmations.
        self._arrived: queue.SimpleQueue[Message | set[MessageIdentity]] = queue.SimpleQueue()
        # Messages that wait for the end of a batch, by batch, in order.
        self._waiting: deque[tuple[int, _Taken]] = deque()
        self._session_before = self._connection_before = 0
        # Bytes of messages. One thread alone changes each count. The difference is unread.
        self._arrived_bytes = self._read_bytes = 0
        self._dropping_at: float | None = None
        self._failure: BaseException | None = None
        self.tally = BridgeTally()
        self._parser = Parser(settings.topics)
        self._spool = MessageSpool(Path(settings.spool.folder))
        self._session = BrokerSession(
            settings.broker,
            settings.password,
            [Template(topic.template).filter for topic in settings.topics],
            self._receive,
            unacknowledged_max=min(2 * settings.batch.records, _PACKETS_MAX),
        )

    def stop(self) -> None:
        """Ends the bridge. Messages that are not stored are in the spool, or with the broker."""
        self._stopping.set()

    def run(self) -> None:
        """Bridges until `stop` is called."""
        threads = [
            threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            for work in (self._collect, self._deliver)
        ]
        self._session.start()
        for thread in threads:
            thread.start()
        while not self._stopping.wait(_TALLY_SECONDS):
            logger.info("tally", extra=asdict(self.tally))
        for thread in threads:
            thread.join()
        self._session.stop()
        self._spool.close()
        logger.info("tally", extra=asdict(self.tally))
        if self._failure is not None:
            raise self._failure

    def _guarded(self, work: Callable[[], None]) -> None:
        """Runs `work`. A failure ends the bridge."""
        try:
            work()
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self._failure = error
        finally:
            self._stopping.set()
            with self._changed:
                self._changed.notify_all()

    def _receive(self, message: Message) -> None:
        """Takes a message of the session. Drops a message of QoS 0 if too many bytes are unread."""
        size = message.held_bytes
        if not message.packet and self._arrived_bytes - self._read_bytes + size > _UNREAD_BYTES_MAX:
            self.tally.dropped += 1
            now = time.monotonic()
            if self._dropping_at is None or now - self._dropping_at >= _TALLY_SECONDS:
                self._dropping_at = now
                extra = {"unread_bytes_max": _UNREAD_BYTES_MAX, "dropped": self.tally.dropped}
                logger.error("messages of QoS 0 are dropped: they come too fast", extra=extra)
            return
        self._arrived_bytes += size
        self._arrived.put(message)

    def _collect(self) -> None:
        while not self._stopping.is_set():
            first = self._next(time.monotonic() + _LOOK_SECONDS)
            if first is not None:
                self._take(first)

    def _take(self, first: Message) -> None:
        """Makes one batch, from its first message to the spool."""
        batch = self._settings.batch
        taken = _Taken()
        size = 0
        records: list[dict[str, Any]] = []
        identities: set[MessageIdentity] = set()
        end = time.monotonic() + batch.seconds
        message: Message | None = first
        while message is not None:
            taken.messages.append(message)
            records += self._read(message, identities, taken.untimed)
            size += len(message.payload)
            count = max(len(records), len(taken.messages))
            is_full = count >= batch.records or size >= _BODY_BYTES_MAX
            message = None if is_full else self._next(end)
        self._keep(taken, records, identities)

    def _next(self, end: float) -> Message | None:
        while True:
            try:
                arrived = self._arrived.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            if isinstance(arrived, Message):
                self._read_bytes += arrived.held_bytes
                return arrived
            self._spool.forget(arrived)

    def _forget(self, message: Message) -> None:
        """Forgets packets whose numbers the broker may have given to other messages."""
        if message.session != self._session_before:
            self._spool.forget_packets()
        elif not message.again and message.connection != self._connection_before:
            # A connection delivers repeated messages before its new messages.
            self._spool.forget_acknowledged()
            self._connection_before = message.connection
        self._session_before = message.session

    def _read(
        self, message: Message, identities: set[MessageIdentity], untimed: set[MessageIdentity]
    ) -> list[dict[str, Any]]:
        """Returns the records of a message, and no records of a known or poisonous message."""
        self.tally.messages += 1
        if message.packet:
            self._forget(message)
        try:
            parsed = self._parser.parse(message.topic, message.payload, time.time_ns())
        except ValueError as error:
            self.tally.poison += 1
            extra = {"topic": message.topic, "bytes": len(message.payload), "reason": str(error)}
            logger.error("a message is no telemetry", extra=extra)  # noqa: TRY400 - no fault of ours
            return []
        packet = None if parsed.timed else message.packet
        identity = MessageIdentity.of(message.topic, message.payload, packet)
        if packet:
            untimed.add(identity)
        is_again = parsed.timed or message.again
        if is_again and (identity in identities or self._spool.is_known(identity)):
            self.tally.repeated += 1
            return []
        if parsed.timed or message.packet:
            identities.add(identity)
        return parsed.records

    def _keep(
        self,
        taken: _Taken,
        records: list[dict[str, Any]],
        identities: set[MessageIdentity],
    ) -> None:
        """Spools a batch once there is room, and acknowledges it if the settings say so."""
        spooled = self._settings.spool.acknowledge == "spooled"
        if not records:
            with self._changed:
                last = self._spool.last() or (self._waiting[-1][0] if self._waiting else 0)
                if spooled or not last:
                    self._acknowledge(taken)
                else:
                    self._waiting.append((last, taken))
            return
        self._wait_for_room()
        with self._changed:
            number = self._spool.append(records, identities, acknowledged=spooled)
            if spooled:
                self._acknowledge(taken)
            else:
                self._waiting.append((number, taken))
            self._changed.notify_all()

    def _acknowledge(self, taken: _Taken) -> None:
        """Acknowledges messages. They stay known until the broker has the acknowledgments."""
        confirmed = partial(self._arrived.put, taken.untimed) if taken.untimed else None
        self._session.acknowledge(taken.messages, confirmed)

    def _wait_for_room(self) -> None:
        """Waits while the spool is full. No message is acknowledged, so the broker keeps them."""
        bytes_max = self._settings.spool.bytes_max
        if self._spool.size() + _BODY_BYTES_MAX <= bytes_max:
            return
        logger.error("the spool is full", extra={"bytes_max": bytes_max})
        with self._changed:
            while self._spool.size() + _BODY_BYTES_MAX > bytes_max:
                if self._stopping.is_set():
                    raise Stopped
                self._changed.wait(_LOOK_SECONDS)
        logger.info("the spool has room again")

    def _deliver(self) -> None:
        service = self._settings.service
        with Client(service.url, self._settings.key) as client:
            delivery = Delivery(
                self._spool, client, service.settle_seconds, self.tally, self._stopping
            )
            while not self._stopping.is_set():
                batch = self._spool.first()
                if batch is None:
                    with self._changed:
                        self._changed.wait(_LOOK_SECONDS)
                    continue
                delivery.deliver(batch)
                self._stored(batch.id)

    def _stored(self, batch: int) -> None:
        """Acknowledges the messages that wait for a batch. A batch of an earlier run has none."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= batch:
                self._acknowledge(self._waiting.popleft()[1])
            self._changed.notify_all()
