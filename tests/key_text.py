"""Texts of keys that nobody issued, and parts of those that were."""

from __future__ import annotations

import zlib


def with_checksum(checked: str) -> str:
    return f"{checked}{zlib.crc32(checked.encode()):08x}"


def key_text(environment: str, key_id: str, secret: str) -> str:
    return with_checksum(f"ftk_{environment}_{key_id}_{secret}")


def id_of(text: str) -> str:
    return text.split("_")[-2]


def secret_of(text: str) -> str:
    return text.rsplit("_", maxsplit=1)[-1][:32]
