"""Rows on their way into a database, and the names that the rows of a workload have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTITY = "entity_id"
NS_PER_SECOND = 1_000_000_000


class SentRow(NamedTuple):
    """One record. `time_ns` counts from 1970. The first tag is the entity."""

    measurement: str
    time_ns: int
    tags: list[tuple[str, str]]
    fields: list[tuple[str, float]]

    @property
    def entity(self) -> str:
        """Name of the entity."""
        return self.tags[0][1]


@dataclass(frozen=True)
class RowNames:
    """Names that rows can have, for databases with tables: a row may lack any but the entity."""

    fields: Mapping[str, tuple[str, ...]]
    """Fields of each measurement."""
    tags: tuple[str, ...]
    """The entity's tag is the first."""
