"""The description of the public API in OpenAPI 3.1: `openapi.json`, filled in.

The file has only the particulars of each operation, response and schema. Names in it that begin
with `$`, except `$ref`, are filled in here:

    "$tags_max"    as a value: the limit in force, or a list of the engine
    "$responses"   answers that every operation may give, or every operation that needs a key
    "$headers"     headers of a response, in addition to the common headers and the headers of its
                   error codes
    "$members"     members of an object; those whose names end in `?` may be absent
    "$body"        content in JSON: a schema, or a list of possible schemas
    "$codes"       the body of an error: one of these codes, and its other members;
                   `surface/error_codes.py` says which headers and which delay a code has

HEAD and OPTIONS are derived from GET and POST.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fleetcast.accounts.keys import SCOPES
from fleetcast.config.sections import FAMILIES
from fleetcast.engine import AGGREGATIONS, INTERVALS, MEASUREMENTS, VERSION
from fleetcast.surface.error_codes import ERROR_CODES

if TYPE_CHECKING:
    from fleetcast.config.sections import Limits

_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_DAY = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
_TIME_PATTERN = (
    f"^(?:{_YEAR}-{_DAY}|{_LEAP_DAY})(?:[Tt ]{_CLOCK}(?::[0-5][0-9](?:[.,][0-9]+)?)?{_OFFSET}?)?$"
)
_ALL_HEADERS = ("X-Request-Id", "Cache-Control", "X-Content-Type-Options")
_MIB = 1 << 20

Object = dict[str, Any]


def document(limits: Limits) -> Object:
    """Returns the whole document, with the limits in force."""
    text = files("fleetcast.admin").joinpath("openapi.json").read_text("utf-8")
    whole: Object = json.loads(text)
    common = whole.pop("$responses")
    for path, operations in whole["paths"].items():
        for operation in operations.values():
            _complete(operation, common)
        if "get" in operations:
            operations["head"] = _head(operations["get"])
        operations["options"] = _options(path, common["any"])
    components = whole["components"]
    components["responses"] = _responses(components["responses"])
    filled: Object = _filled(whole, _values(limits))
    return filled


def _values(limits: Limits) -> Object:
    return {
        "version": VERSION,
        "measurements": list(MEASUREMENTS),
        "intervals": list(INTERVALS),
        "intervals_or_null": [*INTERVALS, None],
        "aggregations": list(AGGREGATIONS),
        "aggregations_or_null": [*AGGREGATIONS, None],
        "scopes": list(SCOPES),
        "families": list(FAMILIES),
        "time_pattern": _TIME_PATTERN,
        "plain_text_pattern": "^[^\\u0000-\\u001f\\u007f]*$",
        "tags_max": limits.tags_max,
        "fields_max": limits.fields_max,
        "batch_records_max": limits.batch_records_max,
        "link_ids_max": limits.link_ids_max,
        "body_size": f"At most {limits.body_bytes_max / _MIB:g} MiB.",
        "www_authenticate": dict(ERROR_CODES["auth_failed"].headers)["WWW-Authenticate"],
        "accept_encoding": dict(ERROR_CODES["unsupported_content_encoding"].headers)[
            "Accept-Encoding"
        ],
    }


def _filled(part: Any, values: Object) -> Any:  # noqa: ANN401 - any JSON
    """Returns the part with values instead of their names, and with the bodies of errors."""
    if isinstance(part, str) and part.startswith("$"):
        return values[part[1:]]
    if isinstance(part, list):
        return [_filled(item, values) for item in part]
    if not isinstance(part, dict):
        return part
    whole = {name: _filled(value, values) for name, value in part.items()}
    if "$members" in whole:
        return _object(whole.pop("$members"), whole)
    return _error(whole.pop("$codes"), whole) if "$codes" in whole else whole


def _object(members: Object, rest: Object) -> Object:
    return {
        "type": "object",
        "required": [name for name in members if not name.endswith("?")],
        "properties": {name.removesuffix("?"): member for name, member in members.items()},
        **rest,
    }


def _error(codes: list[str], members: Object) -> Object:
    code = {"const": codes[0]} if len(codes) == 1 else {"enum": codes}
    if ERROR_CODES[codes[0]].http == HTTPStatus.SERVICE_UNAVAILABLE:
        members["retry_after_seconds"] = {"type": "integer", "minimum": 1}
    whole = {"error": {"type": "string", **code}, **members}
    return _object(whole, {"additionalProperties": False})


def _complete(operation: Object, common: Object) -> None:
    """Adds the common parts: the key, the form of parameters, common responses."""
    keyed = operation.setdefault("security", [{"apiKey": []}])
    inherited = {**common["any"], **(common["keyed"] if keyed else {})}
    operation["responses"] = _responses({**inherited, **operation["responses"]})
    if "parameters" in operation:
        operation["parameters"] = [_parameter(given) for given in operation["parameters"]]
    if "requestBody" in operation:
        operation["requestBody"] = _with_content(operation["requestBody"])


def _responses(given: Object) -> Object:
    """Returns the responses with their headers and content; references stay as they are."""
    return {
        name: response if "$ref" in response else _with_content(_with_headers(response))
        for name, response in given.items()
    }


def _with_headers(given: Object) -> Object:
    body = given.get("$body", [])
    parts = body if isinstance(body, list) else [body]
    names = [*_ALL_HEADERS, *given.pop("$headers", ())]
    names += [
        name
        for part in parts
        for code in part.get("$codes", ())
        for name in ERROR_CODES[code].header_names
    ]
    return {**given, "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def _with_content(given: Object) -> Object:
    body = given.pop("$body", None)
    if body is None:
        return given
    schema = {"oneOf": body} if isinstance(body, list) else body
    return {**given, "content": {"application/json": {"schema": schema}}}


def _parameter(given: Object) -> Object:
    """Returns a parameter of the query; lists are written by repeating the name."""
    repeated = {"style": "form", "explode": True} if given["schema"].get("type") == "array" else {}
    return {"in": "query", "required": False, **repeated, **given}


def _head(get: Object) -> Object:
    """Returns the HEAD operation of a GET operation: its responses have no bodies."""
    responses = {
        status: {"description": "As for GET, without its body."}
        if "$ref" in response
        else {name: part for name, part in response.items() if name != "content"}
        for status, response in get["responses"].items()
    }
    return {
        **get,
        "operationId": f"{get['operationId']}Head",
        "summary": f"{get['summary']} The head of the answer only.",
        "responses": responses,
    }


def _options(path: str, responses: Object) -> Object:
    return {
        "operationId": "options" + "".join(part.capitalize() for part in path.split("/")),
        "tags": [path.split("/")[1]],
        "summary": "The methods of the path; needs no key.",
        "security": [],
        "responses": {"204": {"$ref": "#/components/responses/Options"}, **responses},
    }
