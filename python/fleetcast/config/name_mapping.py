"""`adapters.toml`: the names under which records of other protocols are stored.

Example: Telegraf's `modem` becomes `link`, and its tag `site` names the entity.

    [[map]]
    from = "modem"
    to = "link"
    entity = "site"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.toml_file import read_toml
from fleetcast.engine import NameMapping
from fleetcast.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

_MEMBERS = ("from", "to", "prefix", "entity")
_OTHERS = "*"

Rule = tuple[str | None, str, str | None]


def read_names(path: Path) -> NameMapping:
    """Reads the mapping of a file; a missing file maps no names. Raises `OperatorError`."""
    try:
        document = read_toml(path)
    except FileNotFoundError:
        document = {}
    tables = document.pop("map", [])
    if document or not isinstance(tables, list):
        message = f"{path}: must have tables [[map]] and nothing else"
        raise OperatorError(message)
    rules: dict[str, Rule] = {}
    for number, table in enumerate(tables, 1):
        source, rule = _rule(table, f"{path}: table {number}")
        if source in rules:
            message = f'{path}: table {number}: from = "{source}" is there twice'
            raise OperatorError(message)
        rules[source] = rule
    others = rules.pop(_OTHERS, (None, "", None))
    return NameMapping(list(rules.items()), others)


def _rule(table: object, place: str) -> tuple[str, Rule]:
    """Returns the source and the rule of one table. Raises `OperatorError`."""
    if not isinstance(table, dict):
        message = f"{place} is no table"
        raise OperatorError(message)
    for name, value in table.items():
        if name not in _MEMBERS:
            message = f"{place}: {name} is not one of {', '.join(_MEMBERS)}"
            raise OperatorError(message)
        if not isinstance(value, str) or (not value and name != "prefix"):
            message = f"{place}: {name} must be a string with something in it"
            raise OperatorError(message)
    source = table.get("from")
    if source is None:
        message = f'{place}: from is missing; "*" is for all names without a table'
        raise OperatorError(message)
    return source, (table.get("to"), table.get("prefix", ""), table.get("entity"))
