"""`fleetcast forecast release …`: which model answers."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import Run, instant, table, with_run
from fleetcast.config.sections import FAMILIES
from fleetcast.errors import OperatorError
from fleetcast.forecast.serving.clock import NS_PER_SECOND
from fleetcast.forecast.serving.rollouts import Role
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.installation.forecasts import provide_models

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleetcast.forecast.serving.releases import Releases
    from fleetcast.forecast.serving.rollouts import Rollout

_SHOWN = (
    *("family", "changed", "role", "percent"),
    *("model_version", "model_release_id", "in_force"),
)
_family = click.option("--family", type=click.Choice(FAMILIES), required=True)


@click.group()
def release() -> None:
    """See and change which model answers, at run time."""


@release.command("list")
@click.option("--family", type=click.Choice(FAMILIES), help="Only this family.")
@with_run
def list_(run: Run, family: str | None) -> None:
    """List every change; the newest is last and in force."""
    families = FAMILIES if family is None else (family,)
    with _releases(run, to_read=True) as releases:
        rows = [row for each in families for row in _rows(each, releases)]
    run.answer(rows, table(_SHOWN, [[row[name] for name in _SHOWN] for row in rows]))


@release.command()
@_family
@click.option(
    "--model",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="ONNX file of `forecast train`; for canary and shadow also a file of your own. By default"
    " the model of this version.",
)
@click.option(
    "--role",
    type=click.Choice(["primary", "canary", "shadow"]),
    default="primary",
    help="canary answers for some entities, shadow is only scored.",
)
@click.option(
    "--percent",
    type=click.IntRange(1, 99),
    default=10,
    help="Share of the entities that a canary answers for.",
)
@with_run
def promote(run: Run, family: str, model: Path | None, role: str, percent: int) -> None:
    """Let a model answer from now on. A new primary ends canary and shadow.

    Example: fleetcast forecast release promote --family snr --model snr.onnx --role canary
    --percent 5
    """
    with _releases(run) as releases:
        rollout = releases.promote(family, model, Role(role), percent)
    _tell(run, family, rollout)


@release.command()
@_family
@with_run
def rollback(run: Run, family: str) -> None:
    """Undo the last change."""
    with _releases(run) as releases:
        rollout = releases.rollback(family)
    _tell(run, family, rollout)


@contextmanager
def _releases(run: Run, *, to_read: bool = False) -> Iterator[Releases]:
    from fleetcast.forecast.serving.releases import Releases

    with run.opened_to_read() if to_read else run.opened() as installation:
        store = installation.stores.predictions
        try:
            if to_read:
                store.ensure()
            else:
                provide_models(store)
            yield Releases(store)
        except PredictionStoreUnavailable as error:
            raise OperatorError(str(error)) from error


def _rows(family: str, releases: Releases) -> list[dict[str, object]]:
    rollouts = releases.all(family)
    return [
        {
            "family": family,
            "rollout_id": rollout.rollout_id,
            "changed": instant(rollout.changed_at_ns // NS_PER_SECOND),
            "role": str(role),
            "percent": rollout.canary_percent if role == "canary" else None,
            "model_version": release.model_version,
            "model_release_id": release.release_id,
            "in_force": "yes" if rollout is rollouts[-1] else "no",
        }
        for rollout in rollouts
        for role, release in rollout.roles()
    ]


def _tell(run: Run, family: str, rollout: Rollout) -> None:
    document = {
        "family": family,
        "rollout_id": rollout.rollout_id,
        "releases": [
            {
                "traffic_role": str(role),
                "model_version": release.model_version,
                "model_release_id": release.release_id,
            }
            for role, release in rollout.roles()
        ],
    }
    roles = ", ".join(f"{role} {release.model_version}" for role, release in rollout.roles())
    run.answer(document, f"{family}: {roles or 'no model answers'}.")
