"""Puts the settings together: `fleetcast.toml`, then the environment, then the command line.

Every source is checked whole, also values that a later source replaces. So one run shows all
problems.

Example: `workers = 4` under `[http]`, `FLEETCAST_HTTP__WORKERS=4` and `--set http.workers=4` mean
the same, and the command line wins.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from fleetcast.config.sections import POSTGRESQL, Settings
from fleetcast.config.toml_file import read_toml
from fleetcast.config.values import Unfit, fit, read_word
from fleetcast.errors import OperatorError, SettingsError
from fleetcast.extras import is_installed, remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SETTINGS_FILE = "fleetcast.toml"
DEFAULT = "default"
_PREFIX = "FLEETCAST_"
_SECTIONS: dict[str, type] = get_type_hints(Settings)
_REFLECTING = ("development", "sandbox")


class Override(NamedTuple):
    """A value of the command line: `http.address`, its text, and the option that gave it."""

    name: str
    text: str
    origin: str


@dataclass(frozen=True)
class Resolved:
    """Settings, and the source of the value of every `section.name`."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> Iterator[tuple[str, object, str]]:
        """Yields name, value and source of every setting; secrets are masked."""
        for section, kind in _SECTIONS.items():
            values = getattr(self.settings, section)
            for item in fields(kind):
                value = getattr(values, item.name)
                masked = "********" if item.metadata["secret"] and value else value
                name = f"{section}.{item.name}"
                yield name, masked, self.origins[name]


class _Given(NamedTuple):
    name: str
    value: object
    origin: str


def resolve(
    directory: Path, environ: Mapping[str, str], overrides: Iterable[Override] = ()
) -> Resolved:
    """Resolves the settings of a data directory.

    Raises `SettingsError` with every fault of every source.
    """
    problems: list[str] = []
    given = [
        *_from_file(directory / SETTINGS_FILE, problems),
        *_from_environment(environ),
        *(_Given(name, _word(name, text), origin) for name, text, origin in overrides),
    ]
    values: dict[str, dict[str, object]] = {section: {} for section in _SECTIONS}
    origins = {
        f"{section}.{item.name}": DEFAULT
        for section, kind in _SECTIONS.items()
        for item in fields(kind)
    }
    for name, value, origin in given:
        section, _, item = name.partition(".")
        try:
            values[section][item] = _checked(name, value)
        except Unfit as unfit:
            problems.append(f"{origin}: {name} {unfit}")
        else:
            origins[name] = origin
    keys = [f"security.master_key_{kind}" for kind in ("file", "command")]
    if all(origins[name] != DEFAULT for name in keys):
        problems.append(f"{keys[0]} and {keys[1]} are both set: keep one")
    if values["store"].get("backend") == POSTGRESQL:
        named = {name for name, value, _ in given if value}
        missing = {"store.database", "store.objects"} - named
        problems += [
            f"{name} must be set for store.backend = postgresql" for name in sorted(missing)
        ]
    if not is_installed("forecast"):
        problems += _without_forecasts(values, origins)
    if problems:
        raise SettingsError(problems)
    return Resolved(_built(values), origins)


def _without_forecasts(
    values: dict[str, dict[str, object]], origins: dict[str, str]
) -> Iterator[str]:
    """Turns forecasts off by default; yields a problem if the settings ask for them."""
    if origins["forecast.families"] == DEFAULT:
        values["forecast"]["families"] = ()
        origins["forecast.families"] = "default without the extra forecast"
    for section, item in (("forecast", "families"), ("topology", "simulate")):
        if values[section].get(item):
            name = f"{section}.{item}"
            yield f"{origins[name]}: {name} needs an extra: {remedy('forecast')}"


def settings_to_json(settings: Settings) -> str:
    """Returns the settings as text that `settings_from_json` reads."""
    return json.dumps(asdict(settings))


def settings_from_json(text: str) -> Settings:
    """Reads the text of `settings_to_json`, in a child process."""
    return _built(
        {
            section: {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
            }
            for section, values in json.loads(text).items()
        }
    )


def _built(values: Mapping[str, Mapping[str, object]]) -> Settings:
    sections: dict[str, Any] = {
        section: kind(**values.get(section, {})) for section, kind in _SECTIONS.items()
    }
    settings = Settings(**sections)
    if settings.grpc.reflection is None:
        reflection = settings.service.environment in _REFLECTING
        settings = replace(settings, grpc=replace(settings.grpc, reflection=reflection))
    return settings


def _checked(name: str, value: object) -> object:
    """Returns the value in the type of its setting. Raises `Unfit`."""
    section, _, item = name.partition(".")
    kind = _kind(name)
    if kind is None:
        names = [f"{each}.{item.name}" for each, of in _SECTIONS.items() for item in fields(of)]
        meant = "".join(f": did you mean {near}?" for near in get_close_matches(name, names, n=1))
        message = f"is not a setting{meant}"
        raise Unfit(message)
    fitted = fit(value, kind)
    (found,) = (each for each in fields(_SECTIONS[section]) if each.name == item)
    for check in found.metadata["checks"]:
        problem = check(fitted)
        if problem:
            raise Unfit(problem)
    return fitted


def _kind(name: str) -> object:
    """Returns the type of a setting, or `None` if there is no such setting."""
    section, _, item = name.partition(".")
    return get_type_hints(_SECTIONS[section]).get(item) if section in _SECTIONS else None


def _word(name: str, text: str) -> object:
    """Returns the value of a word. If the setting is a text, `8080` stays a text."""
    value = read_word(text)
    return text if _kind(name) is str and not isinstance(value, str) else value


def _from_file(path: Path, problems: list[str]) -> Iterator[_Given]:
    try:
        tables = read_toml(path)
    except FileNotFoundError:
        return
    except OperatorError as error:
        problems.append(str(error))
        return
    for section, table in tables.items():
        if not isinstance(table, dict):
            problems.append(f"{path}: {section} is not a section")
            continue
        for name, value in table.items():
            yield _Given(f"{section}.{name}", value, str(path))


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Given]:
    """Yields `FLEETCAST_SECTION__NAME` values.

    Names without `__` are skipped, because an orchestrator may set `FLEETCAST_PORT` for its own
    use.
    """
    for variable in sorted(environ):
        if variable.startswith(_PREFIX) and "__" in variable:
            name = variable.removeprefix(_PREFIX).lower().replace("__", ".", 1)
            yield _Given(name, _word(name, environ[variable]), variable)
