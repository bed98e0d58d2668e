"""The description of the public API as a page: HTML that is made from the OpenAPI document.

The page needs no script. A link leads from each name of a schema to the schema.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleetcast.admin.openapi import Object

STYLE_PATH = "/docs.css"
_CODE = re.compile(r"`([^`]+)`")
# Derived from GET and POST, so they would say everything twice.
_DERIVED = ("head", "options")
_BOUNDS = (
    *("minimum", "maximum", "minLength", "minItems", "maxItems", "maxProperties"),
    *("pattern", "default"),
)
_NOTE = (
    "A request sends its key in the header <code>x-api-key</code>. A member with a question mark "
    'may be absent. For programs, also with the headers of answers: <a href="/openapi.json">'
    "openapi.json</a>."
)


def style() -> bytes:
    """Returns the style sheet of the page."""
    return files("fleetcast.admin").joinpath("docs.css").read_bytes()


def page(document: Object) -> str:
    """Returns the page of an OpenAPI document."""
    info, components = document["info"], document["components"]
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method not in _DERIVED
    ]
    contents = "".join(
        f"<li>{_link(operation['operationId'], f'{method} {path}')}</li>"
        for method, path, operation in operations
    )
    body = [
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_prose(info['description'])}</p>",
        f"<p>{_NOTE}</p>",
        f"<nav><ul>{contents}</ul></nav>",
        *(_operation(*each, components["responses"]) for each in operations),
        "<h2>Schemas</h2>",
        *(_named_schema(name, schema) for name, schema in components["schemas"].items()),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(info['title'])}</title>\n"
        f'<link rel="stylesheet" href="{STYLE_PATH}">\n</head>\n<body>\n<main>\n'
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _operation(method: str, path: str, operation: Object, responses: Object) -> str:
    parts = [
        f'<section id="{escape(operation["operationId"])}">',
        f"<h2><code>{method} {escape(path)}</code></h2>",
        f"<p>{_prose(operation['summary'])} {_prose(operation.get('description', ''))}</p>",
    ]
    if not operation["security"]:
        parts.append("<p>Needs no key.</p>")
    if "parameters" in operation:
        rows = [
            (f"<code>{escape(each['name'])}</code>", _form(each["schema"]), _note(each))
            for each in operation["parameters"]
        ]
        parts.append(_table(("Parameter", "Form", "Meaning"), rows))
    if "requestBody" in operation:
        body = operation["requestBody"]
        parts.append(f"<p>Body: {_content(body)}. {_prose(body['description'])}</p>")
    rows = [_response(status, each, responses) for status, each in operation["responses"].items()]
    parts.append(_table(("Status", "Body", "Meaning"), sorted(rows)))
    return "\n".join([*parts, "</section>"])


def _response(status: str, response: Object, named: Object) -> tuple[str, str, str]:
    whole = named[_name(response)] if "$ref" in response else response
    return escape(status), _content(whole), _prose(whole["description"])


def _content(part: Object) -> str:
    return _form(part["content"]["application/json"]["schema"]) if "content" in part else ""


def _named_schema(name: str, schema: Object) -> str:
    form = _members(schema) if "properties" in schema else f"<p>{_form(schema)}</p>"
    text = _prose(schema.get("description", ""))
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{text}</p>{form}</section>'


def _members(schema: Object) -> str:
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(name)}</code>",
            _form(member),
            _note({**member, "required": name in required}),
        )
        for name, member in schema["properties"].items()
    ]
    return _table(("Member", "Form", "Meaning"), rows)


def _note(part: Mapping[str, object]) -> str:
    required = "Required." if part["required"] else ""
    return f"{required} {_prose(str(part.get('description', '')))}".strip()


def _form(schema: Object) -> str:
    """Returns the form of a value. Example: `array of <a href="#Time">Time</a>`."""
    if "$ref" in schema:
        return _link(_name(schema), _name(schema))
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return " or ".join(map(_form, schema[name]))
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        form = " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    elif schema["type"] == "array":
        form = f"array of {_form(schema['items'])}"
    elif "properties" in schema:
        required = schema.get("required", ())
        form = ", ".join(
            f"<code>{escape(name)}{'' if name in required else '?'}</code>: {_form(member)}"
            for name, member in schema["properties"].items()
        )
        return f"{{{form}}}"
    elif isinstance(schema.get("additionalProperties"), dict):
        form = f"object of {_form(schema['additionalProperties'])}"
    else:
        kinds = schema["type"]
        form = kinds if isinstance(kinds, str) else " or ".join(kinds)
    bounds = [
        f"{name} <code>{escape(json.dumps(schema[name]))}</code>"
        for name in _BOUNDS
        if name in schema
    ]
    return f"{form}, {', '.join(bounds)}" if bounds else form


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _link(target: str, text: str) -> str:
    return f'<a href="#{escape(target)}">{escape(text)}</a>'


def _name(reference: Object) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _prose(text: str) -> str:
    """Returns a text in which backticks have become code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
