"""Receipts that are signed, so that a reader can tell if a receipt was changed.

The signature is Ed25519 over the line `receipt of fleetcast 1` and the receipt as JSON in ASCII,
with sorted names and without spaces. Anyone can check it with the public key.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LABEL = b"receipt of fleetcast 1\n"
_BYTES_MAX = 1 << 20
"""Most bytes of a file with a receipt. A receipt has about two thousand."""


def signed(secret: bytes, receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `receipt` with its signature, and with the public key that checks the signature.

    `secret` has 32 bytes. Key and signature are hexadecimal, of 64 and 128 characters.
    """
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - slow to load

    key = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
    content = json.dumps(receipt, sort_keys=True, separators=(",", ":")).encode()
    return {
        "receipt": receipt,
        "public_key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(_LABEL + content).hex(),
    }


def read_receipt(path: Path, secret: bytes) -> dict[str, Any]:
    """Returns the receipt in a file.

    Raises `OSError`, and `OperatorError` if the receipt was changed or `secret` did not sign it.
    """
    with path.open("rb") as file:
        content = file.read(_BYTES_MAX)
    try:
        document = json.loads(content)
        receipt: dict[str, Any] = document["receipt"]
        signature = document["signature"]
        # The same key and receipt always give the same signature.
        is_signed = hmac.compare_digest(signature, signed(secret, receipt)["signature"])
    except (ValueError, KeyError, TypeError, RecursionError):
        is_signed = False
    if not is_signed:
        message = f"{path} has no receipt of this installation, or the receipt was changed"
        raise OperatorError(message)
    return receipt
