"""`fleetcast doctor`."""

from __future__ import annotations

import os

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.installation.diagnosis import diagnose


@click.command()
@with_run
def doctor(run: Run) -> int:
    """Check that this installation is sound."""
    findings = diagnose(run.data, os.environ)
    sound = all(finding.ok for finding in findings)
    document = {"ok": sound, "checks": [finding._asdict() for finding in findings]}
    lines = [f"{'ok  ' if each.ok else 'FAIL'}  {each.check}: {each.detail}" for each in findings]
    run.answer(document, "\n".join(lines))
    return 0 if sound else 1
