"""The page of the public API: it has all of the description, and asks nothing of other machines."""

import re
from html.parser import HTMLParser

import pytest

from fleetcast.admin.openapi import document
from fleetcast.admin.reference_page import STYLE_PATH, page, style
from fleetcast.config.sections import Limits

OWN_FILES = {STYLE_PATH, "/openapi.json"}
WITHOUT_END = {"meta", "link"}


class Reader(HTMLParser):
    """Texts, targets and links of a page whose elements are closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.ids, self.links, self.tags = [], [], [], set()
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in WITHOUT_END:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name in {"href", "src"}:
                self.links.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def described():
    return document(Limits())


@pytest.fixture(scope="module")
def read(described):
    return Reader(page(described))


def strings(part, name):
    """Every text under a name, however deep. Example: all names of parameters."""
    if isinstance(part, dict):
        found = [part[name]] if isinstance(part.get(name), str) else []
        return found + [text for each in part.values() for text in strings(each, name)]
    return [text for each in part for text in strings(each, name)] if isinstance(part, list) else []


def test_every_path_parameter_schema_and_description_is_there(described, read):
    text = " ".join(read.texts)
    asked = described["paths"]
    parameters = set(strings(asked, "name"))
    schemas = described["components"]["schemas"]
    members = {name for schema in schemas.values() for name in schema.get("properties", ())}
    missing = [name for name in {*asked, *parameters, *schemas, *members} if name not in text]
    assert missing == []
    plain = " ".join(text.split()).replace(" ", "")
    described_by = strings(described["components"]["responses"], "description")
    assert [each for each in described_by if re.sub(r"[`\s]", "", each) not in plain] == [
        "The methods of the path."  # of OPTIONS, which is left out
    ]


def test_every_error_code_of_an_operation_is_there(described, read):
    responses = described["components"]["responses"]
    codes = set(strings(responses, "const"))
    text = " ".join(read.texts)
    assert codes
    assert [code for code in codes if f'"{code}"' not in text] == []


def test_every_link_leads_to_a_part_of_the_page_or_a_file_of_the_listener(read):
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    inner = {link.removeprefix("#") for link in read.links if link.startswith("#")}
    assert inner - set(read.ids) == set()
    assert {link for link in read.links if not link.startswith("#")} == OWN_FILES


def test_it_needs_no_script_and_no_other_machine(read):
    assert not read.tags & {"script", "style", "img", "iframe"}
    assert b"url(" not in style()
    assert b"@import" not in style()


def test_text_of_the_description_is_no_markup(described):
    hostile = described | {"info": {**described["info"], "title": "<script>x</script>"}}
    assert "script" not in Reader(page(hostile)).tags


def test_it_shows_the_limits_in_force():
    assert "maxItems <code>7</code>" in page(document(Limits(batch_records_max=7)))
