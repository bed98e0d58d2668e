"""`fleetcast doctor`."""

from __future__ import annotations

import os

import click

from fleetcast.cli.common import Run, with_run
from fleetcast.installation.diagnosis import Finding, diagnose


@click.command()
@with_run
def doctor(run: Run) -> int:
    """Check that this installation is sound, and say how to mend it if it is not."""
    findings = diagnose(run.data, os.environ)
    sound = all(finding.ok for finding in findings)
    document = {"ok": sound, "checks": [finding._asdict() for finding in findings]}
    run.answer(document, "\n".join(map(_text, findings)))
    return 0 if sound else 1


def _text(finding: Finding) -> str:
    mark = ("warn" if finding.advice else "ok  ") if finding.ok else "FAIL"
    advice = f"\n      -> {finding.advice}" if finding.advice else ""
    return f"{mark}  {finding.check}: {finding.detail}{advice}"
