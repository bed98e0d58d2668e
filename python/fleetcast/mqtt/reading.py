"""Reads the file of settings, a TOML document, and names all of its faults at once."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from fleetcast.config.toml_file import parsed
from fleetcast.engine import BATCH_RECORDS_MAX
from fleetcast.errors import OperatorError, reason
from fleetcast.mqtt.settings import (
    ACKNOWLEDGE,
    TIME_UNITS,
    BatchSettings,
    BridgeSettings,
    BrokerSettings,
    ServiceSettings,
    SpoolSettings,
    TopicSettings,
)
from fleetcast.mqtt.topics import Template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Section = BrokerSettings | TopicSettings | ServiceSettings | BatchSettings | SpoolSettings

KEY_VARIABLE = "FLEETCAST_MQTT_KEY"
PASSWORD_VARIABLE = "FLEETCAST_MQTT_PASSWORD"  # noqa: S105 - the name of a variable
_SESSION_SECONDS_MIN = 60
_SESSION_SECONDS_MAX = 0xFFFF_FFFE  # the next number means for ever
_SECTIONS = {
    "broker": BrokerSettings,
    "service": ServiceSettings,
    "batch": BatchSettings,
    "spool": SpoolSettings,
}
_TYPES: Mapping[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}

S = TypeVar("S", bound="Section")


class SettingsFault(Exception):
    """Everything that is wrong with a file, one line for each problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_settings(file: Path, environment: Mapping[str, str] = os.environ) -> BridgeSettings:
    """Reads a file. Paths in it are relative to the file. Raises `SettingsFault`, `OSError`."""
    try:
        document = parsed(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, OperatorError) as error:
        raise SettingsFault([reason(error)]) from None
    problems = [
        f"{name}: there is no such section"
        for name in document
        if name not in _SECTIONS and name != "topic"
    ]
    tables = document.get("topic", [])
    parts: dict[str, Any] = {
        name: _part(kind, name, document.get(name, {}), problems)
        for name, kind in _SECTIONS.items()
    }
    topics = [
        _part(TopicSettings, f"topic {at}", table, problems) for at, table in enumerate(tables, 1)
    ]
    if problems:
        raise SettingsFault(problems)
    folder = file.absolute().parent
    broker, service = parts["broker"], parts["service"]
    key = _secret(folder, service.key_file, environment.get(KEY_VARIABLE, ""))
    password = _secret(folder, broker.password_file, environment.get(PASSWORD_VARIABLE, ""))
    settings = BridgeSettings(
        broker=_placed(broker, folder, "authority", "certificate", "private_key"),
        topics=[topic for topic in topics if topic],
        service=service,
        batch=parts["batch"],
        spool=_placed(parts["spool"], folder, "folder"),
        key=key,
        password=password,
    )
    if problems := _faults(settings):
        raise SettingsFault(problems)
    return settings


def _part(kind: type[S], name: str, table: object, problems: list[str]) -> S | None:
    """Returns a section as its class. For a faulty section, returns `None` and adds problems."""
    if not isinstance(table, dict):
        problems.append(f"{name}: should be a table")
        return None
    known = {field.name: field for field in dataclasses.fields(kind)}
    found = [f"{name}.{key}: there is no such setting" for key in table if key not in known]
    for key, field in known.items():
        if key in table:
            found += _mistyped(f"{name}.{key}", table[key], str(field.type))
        elif field.default is field.default_factory is dataclasses.MISSING:
            found.append(f"{name}.{key}: is missing")
    problems += found
    return None if found else kind(**table)


def _mistyped(name: str, value: object, kind: str) -> list[str]:
    if kind not in _TYPES:
        fits = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        return [] if fits else [f"{name}: should be a table of texts"]
    fits = isinstance(value, _TYPES[kind]) and not isinstance(value, bool)
    words = {"str": "a text", "int": "a whole number", "float": "a number"}
    return [] if fits else [f"{name}: should be {words[kind]}"]


def _faults(settings: BridgeSettings) -> list[str]:
    """Lists values of the right type that a setting cannot have."""
    broker, batch, spool = settings.broker, settings.batch, settings.spool
    checks = {
        "broker.url: should be mqtt://HOST[:PORT] or mqtts://HOST[:PORT]": (
            urlsplit(broker.url).scheme in {"mqtt", "mqtts"} and broker.host
        ),
        "broker.client_id: should not be empty, as it names the session": broker.client_id,
        f"broker.session_seconds: should be {_SESSION_SECONDS_MIN} to {_SESSION_SECONDS_MAX}": (
            _SESSION_SECONDS_MIN <= broker.session_seconds <= _SESSION_SECONDS_MAX
        ),
        "broker: authority, certificate and private_key need mqtts://": (
            broker.tls or not (broker.authority or broker.certificate or broker.private_key)
        ),
        "service.url: should be http://HOST or https://HOST": (
            urlsplit(settings.service.url).scheme in {"http", "https"}
        ),
        f"service.key_file or {KEY_VARIABLE}: a key is needed": settings.key,
        "topic: at least one is needed": settings.topics,
        f"batch.records: should be 1 to {BATCH_RECORDS_MAX}": (
            1 <= batch.records <= BATCH_RECORDS_MAX
        ),
        "batch.seconds: should be more than 0": batch.seconds > 0,
        "spool.bytes_max: should be 2097152 or more": spool.bytes_max >= 2 << 20,
        f"spool.acknowledge: should be {' or '.join(ACKNOWLEDGE)}": (
            spool.acknowledge in ACKNOWLEDGE
        ),
    }
    faults = [line for line, holds in checks.items() if not holds]
    for at, topic in enumerate(settings.topics, 1):
        if topic.time_unit not in TIME_UNITS:
            faults.append(f"topic {at}.time_unit: should be one of {', '.join(TIME_UNITS)}")
        try:
            Template(topic.template)
        except ValueError as error:
            faults.append(f"topic {at}.template: {error}")
    return faults


def _secret(folder: Path, file: str, value: str) -> str:
    """Returns the text of a file, or `value` from the environment if no file is named.

    Raises `OSError`, and `SettingsFault` if the file is no text.
    """
    try:
        return (folder / file).read_text(encoding="utf-8").strip() if file else value
    except UnicodeDecodeError as error:
        raise SettingsFault([f"{folder / file}: {reason(error)}"]) from None


def _placed(part: S, folder: Path, *names: str) -> S:
    """Returns the settings with paths that do not depend on the working directory."""
    paths: dict[str, Any] = {
        name: str(folder / path) for name in names if (path := getattr(part, name))
    }
    return dataclasses.replace(part, **paths)
