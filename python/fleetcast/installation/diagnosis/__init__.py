"""Diagnosis of an installation. Each check gives findings; a bad finding says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetcast.config.name_mapping import read_names
from fleetcast.errors import OperatorError, SettingsError
from fleetcast.installation.diagnosis.files import check_files
from fleetcast.installation.diagnosis.finding import Finding as Finding
from fleetcast.installation.diagnosis.machine import check_machine
from fleetcast.installation.diagnosis.scrape import scraped
from fleetcast.installation.diagnosis.secrets import check_secrets
from fleetcast.installation.diagnosis.stores import check_stores
from fleetcast.installation.diagnosis.unreadable import check_unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleetcast.installation.directory import DataDirectory


def diagnose(directory: DataDirectory, environ: Mapping[str, str]) -> list[Finding]:
    """Checks an installation. Leaves out checks that depend on a failed check."""
    try:
        settings = directory.settings(environ).settings
    except SettingsError as error:
        advice = "correct them in fleetcast.toml, the environment or the options"
        return [Finding.failure("settings", "; ".join(error.problems), advice)]
    except OperatorError as error:
        return [Finding.failure("data directory", str(error), "give the right one with --data")]
    metrics = scraped(directory.lock)
    return [
        Finding.good("settings", f"environment {settings.service.environment}"),
        *_check_names(directory),
        *check_machine(directory),
        *check_files(directory.root),
        *check_secrets(directory, settings),
        *check_stores(directory, settings, metrics),
        *check_unreadable(metrics),
    ]


def _check_names(directory: DataDirectory) -> Iterator[Finding]:
    """Checks the names of other protocols, if an operator has given some."""
    if not directory.adapters.exists():
        return
    try:
        read_names(directory.adapters)
    except OperatorError as error:
        advice = "correct it: a service with an adapter listener does not start with it"
        yield Finding.failure("adapters.toml", str(error), advice)
    else:
        yield Finding.good("adapters.toml", "its tables are well formed")
