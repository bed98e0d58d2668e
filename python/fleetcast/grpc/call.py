"""One call on its way through the handlers."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc.aio

from fleetcast.errors import refused

if TYPE_CHECKING:
    from fleetcast.accounts import Identity

    Context = grpc.aio.ServicerContext[bytes, bytes]

_KEY_NAME = "x-api-key"


@dataclass
class Call:
    """Facts about a call so far."""

    context: Context
    route: str
    """`Service/Method`, the service by its last name."""
    client: str = field(init=False)
    """Address and port of the client. The library's call may be gone before its handler ends, and
    asking a call that is gone for this ends the process."""
    identity: Identity | None = None
    received_bytes: int = 0
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def __post_init__(self) -> None:
        self.client = self.context.peer()

    @property
    def address(self) -> str:
        """Address of the client, without its port."""
        return self.client.rpartition(":")[0]

    async def message(self, seconds: float) -> bytes:
        """The one message of the call. Raises `Refused` if none comes in time, or a second one."""
        try:
            async with asyncio.timeout(seconds):
                message: object = await self.context.read()
                # The library keeps quiet about a second message unless the handler reads on.
                if isinstance(message, bytes):
                    end: object = await self.context.read()
                    if end is grpc.aio.EOF:
                        return message
        except TimeoutError:
            raise refused("read_deadline_exceeded") from None
        raise refused("invalid_input", field="payload")

    def keys(self) -> set[str]:
        """The different keys that were sent."""
        metadata = self.context.invocation_metadata() or ()
        values = [value for name, value in metadata if name == _KEY_NAME]
        return {each if isinstance(each, str) else each.decode(errors="replace") for each in values}
