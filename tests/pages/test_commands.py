"""Pages name commands, options, targets, messages, pages and sections that exist."""

import re
import tomllib

import click
import pytest
import yaml

from fleetcast.cli.main import fleetcast
from fleetcast.surface.error_codes import ERROR_CODES
from tests.pages.blocks import anchors, blocks, commands, links, pages
from tests.tidy.files import ROOT, product, short

COMMANDS_MIN = 110


def fault(words):
    """The part of a command that does not exist, or nothing."""
    command, context = fleetcast, click.Context(fleetcast)
    for word in words:
        if not isinstance(command, click.Group):
            break
        if not word.startswith("-"):
            try:
                command = command.get_command(context, word)
            except click.NoSuchCommand:
                command = None
            if command is None:
                return word
    known = {"--help", "--version"} | {name for option in command.params for name in option.opts}
    asked = {word.split("=")[0] for word in words if re.match("--[a-z]", word)}
    return ", ".join(sorted(asked - known)) or None


def test_each_command_and_option_exists():
    found = [(short(page), words) for page in pages() for words in commands(page)]
    assert len(found) >= COMMANDS_MIN
    assert [(page, *words) for page, words in found if fault(words)] == []


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["key", "create", "acme", "--scope", "x"], None),
        (["nothing"], "nothing"),
        (["key", "nothing"], "nothing"),
        (["key", "list", "acme", "--colour"], "--colour"),
    ],
)
def test_a_command_that_does_not_exist_is_found(words, missing):
    assert fault(words) == missing


def test_each_target_of_make_exists():
    makefile = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE))
    asked = {
        (short(page), target)
        for page in pages()
        for target in re.findall(r"(?:`|^|\$ )make ([a-z]+)\b", page.read_text(), re.MULTILINE)
    }
    assert asked
    assert {(page, target) for page, target in asked if target not in known} == set()


def test_each_link_leads_to_a_file_and_a_section():
    everything = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *pages()]
    lost = []
    for page in everything:
        for file, anchor in links(page):
            to = page.parent / file if file else page
            if not to.exists() or (anchor and anchor not in anchors(to)):
                lost.append(f"{short(page)}: {file}#{anchor}")
    assert lost == []


def test_each_page_of_the_folder_is_in_the_site_and_in_the_start_page():
    navigation = (ROOT / "tools" / "site" / "mkdocs.yml").read_text()
    start = ROOT / "docs" / "README.md"
    linked = {start, *((start.parent / file).resolve() for file, _ in links(start))}
    for page in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/send/*.md")]:
        assert f": {short(page)}\n" in navigation
        assert page in linked


def test_blocks_of_data_can_be_read():
    readers = {"toml": tomllib.loads, "yaml": yaml.safe_load}
    shown = [block for page in pages() for block in blocks(page) if block.language in readers]
    assert shown
    for block in shown:
        readers[block.language](block.text)


def trouble(section):
    """First cells of the table of a section of the page about messages."""
    page = (ROOT / "docs" / "trouble.md").read_text()
    (text,) = re.findall(rf"^## {section}\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_each_error_code_has_its_help():
    assert sorted(trouble("Error codes of an answer")) == sorted(ERROR_CODES)


@pytest.mark.parametrize("section", ["Messages of a command", "Lines of the log"])
def test_each_message_with_help_is_one_of_the_program(section):
    sources = "\n".join(path.read_text() for end in (".py", ".rs") for path in product(end))
    messages = trouble(section)
    assert messages
    assert [message for message in messages if message not in sources] == []
