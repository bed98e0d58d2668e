"""Draws queries of the language that `docs/prometheus.md` states."""

from __future__ import annotations

import random

METRICS = ("requests_total", "temperature", "up", "build_info", "latency_bucket", "sparse", "level")
MATCHERS = (
    'job="api"',
    'job!="api"',
    'instance=~"a.*|c.+"',
    'instance!~"b.*"',
    'code="500"',
    'code=~"2..|4.."',
    'room!=""',
    'room="hall"',
    'zone=""',
    'le="0.5"',
    'nothing="x"',
    'job=~".*"',
)
LABELS = ("job", "instance", "code", "room", "le", "zone", "version", "path", "missing")
DURATIONS = ("30s", "1m", "90s", "2m", "5m", "7m30s", "10m", "1h", "1m15s")
OFFSETS = ("30s", "1m", "5m", "-1m", "-30s", "15s")
OF_RANGES = (
    "rate",
    "irate",
    "increase",
    "delta",
    "idelta",
    "deriv",
    "changes",
    "resets",
    "avg_over_time",
    "count_over_time",
    "last_over_time",
    "max_over_time",
    "min_over_time",
    "present_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "sum_over_time",
    "absent_over_time",
)
OF_NUMBERS = (
    "abs",
    "ceil",
    "exp",
    "floor",
    "ln",
    "log10",
    "log2",
    "sgn",
    "sqrt",
    "round",
    "timestamp",
    "sort",
    "sort_desc",
    "absent",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "hour",
    "minute",
    "month",
    "year",
)
FOLDS = (
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "group",
    "stddev",
    "stdvar",
)
ARITHMETIC = ("+", "-", "*", "/", "%", "^")
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
NUMBERS = ("0", "1", "2", "0.5", "-1", "3.5", "10", "100", "1e3", "NaN", "Inf", "-Inf", "0.1")


class Grammar:
    """Draws queries from a seed. `times` are instants in seconds that `@` may name."""

    def __init__(self, seed: int, times: tuple[int, ...]) -> None:
        self._drawn = random.Random(seed)
        self._times = times

    def query(self) -> str:
        depth = self._drawn.choice((1, 2, 2, 3, 3, 4))
        return self.scalar(depth) if self._chance(0.05) else self.vector(depth)

    def vector(self, depth: int) -> str:
        if depth <= 0:
            return self._selector()
        ways = (
            (self._selector, 2),
            (lambda: self._ranged(depth), 4),
            (lambda: self._aggregated(depth), 4),
            (lambda: self._of_number(depth), 2),
            (lambda: self._with_scalar(depth), 2),
            (lambda: self._with_vector(depth), 4),
            (lambda: self._set(depth), 2),
            (lambda: self._relabelled(depth), 1),
            (self._histogram, 1),
            (lambda: f"-{self.vector(depth - 1)}", 0.3),
            (lambda: f"({self.vector(depth - 1)})", 0.5),
            (lambda: f"vector({self.scalar(depth - 1)})", 0.5),
            (lambda: self._clamped(depth), 1),
        )
        return self._one(ways)

    def scalar(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.5):
            return self._drawn.choice((*NUMBERS, "time()"))
        left, right = self.scalar(depth - 1), self.scalar(depth - 1)
        return self._one(
            (
                (lambda: f"scalar({self.vector(depth - 1)})", 2),
                (lambda: f"({left} {self._drawn.choice(ARITHMETIC)} {right})", 2),
                (lambda: f"({left} {self._drawn.choice(COMPARISONS)} bool {right})", 1),
                (lambda: f"-{left}", 0.5),
            )
        )

    def _one(self, ways):
        makers, weights = zip(*ways, strict=True)
        return self._drawn.choices(makers, weights)[0]()

    def _chance(self, share: float) -> bool:
        return self._drawn.random() < share

    def _matched(self) -> str:
        metric = self._drawn.choice(METRICS)
        matchers = self._drawn.sample(MATCHERS, self._drawn.choice((0, 0, 1, 1, 2)))
        if self._chance(0.04):
            return '{__name__=~"temp.*|level",' + ",".join(matchers) + "}"
        return metric + (f"{{{','.join(matchers)}}}" if matchers else "")

    def _modifiers(self) -> str:
        text = f" offset {self._drawn.choice(OFFSETS)}" if self._chance(0.12) else ""
        if self._chance(0.08):
            at = self._drawn.choice(("start()", "end()", *map(str, self._times)))
            text += f" @ {at}"
        return text

    def _selector(self) -> str:
        return self._matched() + self._modifiers()

    def _range(self, depth: int) -> str:
        duration = self._drawn.choice(DURATIONS)
        if depth > 1 and self._chance(0.25):
            step = self._drawn.choice(("", "15s", "30s", "1m", "47s"))
            return f"({self.vector(depth - 2)})[{duration}:{step}]" + self._modifiers()
        return f"{self._matched()}[{duration}]" + self._modifiers()

    def _ranged(self, depth: int) -> str:
        ranged = self._range(depth)
        name = self._drawn.choice((*OF_RANGES, "quantile_over_time", "predict_linear", "rate"))
        if name == "quantile_over_time":
            return f"{name}({self._fraction()}, {ranged})"
        if name == "predict_linear":
            return f"{name}({ranged}, {self._drawn.choice((60, 3600, -60, 0.5))})"
        return f"{name}({ranged})"

    def _fraction(self) -> str:
        return self._drawn.choice(("0", "0.25", "0.5", "0.9", "0.99", "1", "-1", "2", "NaN"))

    def _names(self) -> str:
        return ", ".join(self._drawn.sample(LABELS, self._drawn.choice((0, 1, 1, 2, 3))))

    def _aggregated(self, depth: int) -> str:
        inner = self.vector(depth - 1)
        how = self._drawn.choice((f" by ({self._names()})", f" without ({self._names()})", ""))
        name = self._drawn.choice((*FOLDS, *FOLDS, "topk", "bottomk", "quantile", "count_values"))
        first = {
            "topk": self._drawn.choice(("1", "2", "3", "5", "0")),
            "bottomk": self._drawn.choice(("1", "2", "3", "5", "-1")),
            "quantile": self._fraction(),
            "count_values": f'"{self._drawn.choice(("value", "job"))}"',
        }.get(name)
        arguments = inner if first is None else f"{first}, {inner}"
        return f"{name}{how} ({arguments})" if self._chance(0.7) else f"{name}({arguments}){how}"

    def _of_number(self, depth: int) -> str:
        name = self._drawn.choice(OF_NUMBERS)
        if name == "round" and self._chance(0.5):
            return f"round({self.vector(depth - 1)}, {self._drawn.choice(('0.1', '5', '0.3'))})"
        return f"{name}({self.vector(depth - 1)})"

    def _clamped(self, depth: int) -> str:
        inner = self.vector(depth - 1)
        low, high = self._drawn.choice(NUMBERS), self._drawn.choice(NUMBERS)
        return self._drawn.choice(
            (
                f"clamp({inner}, {low}, {high})",
                f"clamp_min({inner}, {low})",
                f"clamp_max({inner}, {high})",
            )
        )

    def _operator(self) -> str:
        if self._chance(0.55):
            return self._drawn.choice(ARITHMETIC)
        return self._drawn.choice(COMPARISONS) + self._drawn.choice(("", " bool"))

    def _with_scalar(self, depth: int) -> str:
        pair = [self.vector(depth - 1), self.scalar(depth - 1)]
        self._drawn.shuffle(pair)
        return f"({pair[0]} {self._operator()} {pair[1]})"

    def _with_vector(self, depth: int) -> str:
        left = self.vector(depth - 1)
        right = left if self._chance(0.3) else self.vector(depth - 1)
        matching = ""
        if self._chance(0.7):
            matching = f" {self._drawn.choice(('on', 'ignoring'))} ({self._names()})"
            if self._chance(0.4):
                side = self._drawn.choice(("group_left", "group_right"))
                matching += f" {side}" + self._drawn.choice(("", " (version)", " (room)"))
        if self._chance(0.3):
            names = self._drawn.choice(("job", "instance", "job, instance"))
            left, right = f"sum by ({names}) ({left})", f"avg by ({names}) ({right})"
        return f"({left} {self._operator()}{matching} {right})"

    def _set(self, depth: int) -> str:
        name = self._drawn.choice(("and", "or", "unless"))
        matching = ""
        if self._chance(0.5):
            matching = f" {self._drawn.choice(('on', 'ignoring'))} ({self._names()})"
        return f"({self.vector(depth - 1)} {name}{matching} {self.vector(depth - 1)})"

    def _relabelled(self, depth: int) -> str:
        inner = self.vector(depth - 1)
        source = self._drawn.choice(LABELS)
        if self._chance(0.5):
            return f'label_join({inner}, "joined", "-", "job", "{source}")'
        target, text = self._drawn.choice(
            (("made", "$1"), ("job", "x-$1"), ("made", ""), ("code", "n"))
        )
        expression = self._drawn.choice(("(.*)", "(.).*", "a(.*)", "no"))
        return f'label_replace({inner}, "{target}", "{text}", "{source}", "{expression}")'

    def _histogram(self) -> str:
        duration = self._drawn.choice(DURATIONS)
        inner = self._drawn.choice(
            (
                f"rate(latency_bucket[{duration}])",
                "latency_bucket",
                f"sum by (le, job) (rate(latency_bucket[{duration}]))",
                f"sum by (le) (increase(latency_bucket[{duration}]))",
                "temperature",
            )
        )
        return f"histogram_quantile({self._fraction()}, {inner})"
