"""The table of figures: ours beside its reference, with the goal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One row of the table; without `goal` it is there for orientation."""

    figure: str
    ours: str
    reference: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    @staticmethod
    def at_least(figure: str, ours: float, reference: str, value: float, goal: float) -> Line:
        """A rate that should be `goal` times the reference's."""
        ratio = ours / value
        text = f">= {goal:g}x" if goal >= 1 else f">= {goal:.0%}"
        return Line(figure, rate(ours), f"{reference}: {rate(value)}", ratio, text, ratio >= goal)

    @staticmethod
    def at_most(figure: str, ours: float, reference: str, value: float, goal: float) -> Line:
        """A time that should be no more than `goal` times the reference's."""
        ratio = ours / value
        met = ratio <= goal
        return Line(figure, ms(ours), f"{reference}: {ms(value)}", ratio, f"<= {goal:g}x", met)

    def cells(self) -> list[str]:
        """The row as text."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        met = {None: "", True: "met", False: "missed"}[self.met]
        return [self.figure, self.ours, self.reference, ratio, self.goal, met]


def rate(per_second: float) -> str:
    return f"{per_second / 1_000:,.0f} k/s"


def ms(seconds: float) -> str:
    return f"{seconds * 1_000:.2f} ms"


HEAD = ["figure", "ours", "reference", "ratio", "goal", ""]


def as_text(lines: list[Line]) -> str:
    rows = [HEAD, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def as_markdown(lines: list[Line], description: str) -> str:
    rows = [HEAD, ["---", "---:", "---", "---:", "---", "---"], *(line.cells() for line in lines)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{description}\n\n{table}\n"
