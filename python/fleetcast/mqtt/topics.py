"""Templates of topics: levels that become tags. Example: `fleet/{entity_id}/{measurement}`."""

from __future__ import annotations

import re

_LEVEL = re.compile(r"\{(\w+)\}")


class Template:
    """A template; `filter` is the topic filter to subscribe to.

    A level is a text, `{NAME}`, or `+` for any text without a meaning; `#` may be the last level.
    Example: `fleet/{entity_id}/+` has the filter `fleet/+/+`. Raises `ValueError` for other levels,
    and for a name that comes twice.
    """

    def __init__(self, text: str) -> None:
        self._levels = text.split("/")
        self._names = [
            named[1] if (named := _LEVEL.fullmatch(level)) else None for level in self._levels
        ]
        self._is_open = self._levels[-1] == "#"
        used = [name for name in self._names if name]
        if len(used) != len(set(used)):
            message = "a name comes twice"
            raise ValueError(message)
        if not text or any(map(self._is_wrong, range(len(self._levels)))):
            message = "a level should be a text, {NAME} or +, and # can only be the last"
            raise ValueError(message)
        self.filter = "/".join(
            "+" if name else level for name, level in zip(self._names, self._levels, strict=True)
        )

    def _is_wrong(self, at: int) -> bool:
        level = self._levels[at]
        if level == "+" or self._names[at] or (level == "#" and at == len(self._levels) - 1):
            return False
        return any(sign in level for sign in "+#{}\0")

    def match(self, topic: str) -> dict[str, str] | None:
        """Returns values by name, or `None` for a topic of another form.

        Example: the template `fleet/{entity_id}/+` gives `{"entity_id": "link-1"}` for
        `fleet/link-1/raw`.
        """
        levels = topic.split("/")
        own = len(self._levels) - self._is_open
        if len(levels) < own or (len(levels) > own and not self._is_open):
            return None
        found: dict[str, str] = {}
        for level, name, expected in zip(levels, self._names, self._levels, strict=False):
            if name:
                found[name] = level
            elif expected not in {"+", "#", level}:
                return None
        return found
