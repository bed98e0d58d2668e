"""Listening sockets that the service manager has opened, as systemd does for a socket unit.

The manager passes them as descriptors from 3 on, counted in `LISTEN_FDS`, to the process of
`LISTEN_PID`. Such a socket takes the place of the listener with its address. The manager keeps the
socket open, so connections wait while the service restarts.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from fleetcast.errors import OperatorError
from fleetcast.supervisor.listening import InheritedSocket, bound_address

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from fleetcast.config import Address

_FIRST_DESCRIPTOR = 3
_SHOWN_MAX = 40
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def take_inherited(environment: MutableMapping[str, str]) -> dict[Address, InheritedSocket]:
    """Returns the sockets by address, and takes the variables out of the environment.

    Raises `OperatorError` for a count that is no number, and for a socket that is not a listening
    socket of TCP.
    """
    pid, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return {}
    try:
        end = _FIRST_DESCRIPTOR + int(count)
    except ValueError:
        message = f"LISTEN_FDS: {count[:_SHOWN_MAX]!r} is no number of sockets"
        raise OperatorError(message) from None
    found = {}
    for descriptor in range(_FIRST_DESCRIPTOR, end):
        try:
            inherited = InheritedSocket(fileno=descriptor)
            listens = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            sound = inherited.family in _FAMILIES and listens
        except OSError:
            sound = False
        if not sound:
            message = f"LISTEN_FDS: descriptor {descriptor} is no listening socket of TCP"
            raise OperatorError(message)
        inherited.set_inheritable(False)
        found[bound_address(inherited)] = inherited
    return found


def refuse_unused(inherited: dict[Address, InheritedSocket]) -> None:
    """Raises `OperatorError` if a socket is left: its connections would wait without an end."""
    if inherited:
        addresses = ", ".join(map(str, inherited))
        message = f"LISTEN_FDS: no listener has the address {addresses}; the settings name others"
        raise OperatorError(message)
