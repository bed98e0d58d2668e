"""How far probabilities of low links and full pools hold: their reliability and Brier scores.

    python -m benches.forecast.risk --data DIR

On the judged periods. A link's threshold is 1 or 3 dB below the median of its last day, a pool's
1.5 or 3 times the mean of its last week. The last value is turned into probabilities by the same
function. Some two minutes on one core.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benches.forecast.answers import answered
from benches.forecast.judged import as_judged
from fleetcast.forecast.families import MINUTE_NS, SNR
from fleetcast.forecast.features import view
from fleetcast.forecast.risk import below
from fleetcast.forecast.training.samples import at_steps, sampled
from fleetcast.forecast.training.sets import SETS

EDGES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9)
BESIDE = {"snr": (-1.0, -3.0), "demand": (1.5, 3.0)}
SAID = {"snr": "{:g} dB", "demand": "{:g} times"}


def thresholds(family, samples, beside):
    """The threshold of each sample [samples, 1]."""
    usual = "p50_24h" if family is SNR else "mean_7d"
    values = samples.matrix[:, view(family).index(usual)][:, None]
    return values + beside if family is SNR else values * beside


def lines(family, name, beside, samples, answers):
    """A row of Brier scores, and a row of shares in which values were beyond the threshold."""
    threshold = thresholds(family, samples, beside)
    known = ~np.isnan(samples.truth) & ~np.isnan(threshold)
    came = ((samples.truth < threshold) == (family is SNR))[known]
    risks, briers = {}, {}
    for who, quantiles in {"model": answers, "last_value": samples.last_value}.items():
        probability = below(family, quantiles, threshold)[known]
        risks[who] = probability if family is SNR else 1 - probability
        briers[who] = np.nanmean((risks[who] - came) ** 2)
    bins = np.digitize(risks["model"], EDGES)
    shares = [f"{came[bins == k].mean():.3f}" if (bins == k).any() else "-" for k in range(8)]
    said = f"| {name} | {SAID[family.name].format(beside)} | "
    return (
        f"{said}{came.mean():.4f} | {briers['model']:.4f} | {briers['last_value']:.4f} |",
        said + " | ".join(shares) + " |",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    scores, reliability = [], []
    for one in SETS:
        family, entities = one.family, one.rows(data)
        many = len(entities) > 500
        apart_ns = (60 if many else 5 if family is SNR else 45) * MINUTE_NS
        samples = sampled(family, entities, at_steps(one.test, apart_ns))
        answers = answered(as_judged(family), samples, list(entities.values()))
        for beside in BESIDE[family.name]:
            first, second = lines(family, one.name, beside, samples, answers)
            scores.append(first)
            reliability.append(second)
    head = "| set | threshold | "
    print(head + "share beyond | Brier of the model | of the last value |")
    print("|---" * 5 + "|", *scores, "", sep="\n")
    steps = [f"{a:g}-{b:g}" for a, b in zip((0, *EDGES), (*EDGES, 1), strict=True)]
    print(head + " | ".join(steps) + " |")
    print("|---" * 10 + "|", *reliability, sep="\n")


if __name__ == "__main__":
    main()
