"""A network of 85,001 weights that come with the package: fracast."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import torch
from fracast import FracastModel

from benches.forecast.peers.peer import Peer, steps_ahead

torch.set_num_threads(1)
MODEL = FracastModel.from_pretrained(weights="fp32")
STEPS = dict.fromkeys(("snr", "demand"), MODEL.context_length)
LAST = MODEL.quantiles[-1]


def network(family, values):
    """Its quantiles; beyond the last of them the tail of a normal distribution.

    Past 48 steps it goes on from its own medians.
    """
    steps = steps_ahead(family)
    levels = MODEL.forecast(values, horizon=max(steps))[np.array(steps) - 1]
    answer = [
        levels[:, MODEL.quantiles.index(level)] if level <= LAST else beyond(levels, level)
        for level in family.quantiles
    ]
    return np.stack(answer, axis=-1)


def beyond(levels, level):
    median, last = levels[:, MODEL.quantiles.index(0.5)], levels[:, -1]
    normal = NormalDist()
    return median + (last - median) * normal.inv_cdf(level) / normal.inv_cdf(LAST)


PEERS = [
    Peer(
        "fracast",
        "fracast",
        "Apache-2.0",
        STEPS,
        network,
        learned_from="GiftEvalPretrain, LOTSA, the sets of Chronos, BOOM and fev-bench, and"
        " series made up by TinyCast, as its page names them",
    )
]
