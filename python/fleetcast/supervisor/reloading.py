"""Settings that change while the service runs: on SIGHUP, and when their file is written."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

from fleetcast.config import Settings
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

logger = logging.getLogger(__name__)


class Change(NamedTuple):
    """Settings in force from now on, names that changed, and names that need a restart."""

    settings: Settings
    changed: list[str]
    pending: list[str]


class Reloading:
    """Reads the settings again, and keeps the settings in force."""

    def __init__(self, file: Path, read: Callable[[], Settings]) -> None:
        self._file = file
        self._read = read
        self._seen = self._signature()
        self.settings = read()

    def is_due(self) -> bool:
        """Returns true if the file has changed since the last look."""
        return self._signature() != self._seen

    def reload(self, apply: Callable[[Settings], None]) -> None:
        """Puts new settings in force by `apply`, which may raise `ValueError`, and logs the change.

        Faulty settings are one line in the log, and the old settings stay.
        """
        self._seen = self._signature()
        try:
            change = merged(self.settings, self._read())
            if change.changed:
                apply(change.settings)
        except (OperatorError, OSError, ValueError) as error:
            logger.error("settings not reloaded", extra={"problem": str(error)})  # noqa: TRY400 - one line
            return
        self.settings = change.settings
        if change.pending:
            logger.warning("settings need a restart", extra={"settings": change.pending})
        if change.changed:
            logger.info("settings reloaded", extra={"settings": change.changed})
        else:
            logger.info("settings unchanged")

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def merged(old: Settings, new: Settings) -> Change:
    """Merges `new` into `old`, except for settings that a running service cannot change."""
    changed: list[str] = []
    pending: list[str] = []
    sections = {}
    for section in fields(Settings):
        before, after = getattr(old, section.name), getattr(new, section.name)
        kept = {}
        for item in fields(before):
            if getattr(before, item.name) == getattr(after, item.name):
                continue
            name = f"{section.name}.{item.name}"
            if item.metadata["cold"]:
                pending.append(name)
                kept[item.name] = getattr(before, item.name)
            else:
                changed.append(name)
        sections[section.name] = replace(after, **kept)
    return Change(Settings(**sections), changed, pending)
