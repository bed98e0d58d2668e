"""The page and its files: types, policies, caching, and how much of them there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from fleetcast.surface.browser_policy import SECURITY_FIELDS

STATIC = files("fleetcast.console") / "static"
NPM = Path(sys.prefix) / "console/node_modules/uplot"
BYTES_MAX = 250_000
TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


def static():
    found = {path.name: path for path in STATIC.iterdir() if path.is_file()}
    folders = [path for path in STATIC.iterdir() if path.is_dir()]
    return found | {
        f"{folder.name}/{path.name}": path
        for folder in folders
        for path in folder.iterdir()
        if not path.name.startswith("LICENSE-")
    }


def loaded(stranger):
    """Addresses of what the page loads, and what that loads."""
    page = stranger.ask("").body.decode()
    found = re.findall(r'(?:href|src)="(static/[^"]+)"', page)
    for address in found:
        folder = address.rpartition("/")[0]
        text = stranger.ask(address).body.decode()
        for name in re.findall(r'from "([^"]+)"', text):
            here = re.sub(r"[^/]+/\.\./", "", f"{folder}/{name.removeprefix('./')}")
            if here not in found:
                found.append(here)
    return found


def test_script_and_style_are_at_most_250_kb():
    sizes = {name: len(path.read_bytes()) for name, path in static().items()}
    counted = sum(size for name, size in sizes.items() if name.endswith((".js", ".css")))
    print(counted, sizes)
    assert counted <= BYTES_MAX


def test_every_file_is_asked_for_by_the_page(stranger):
    names = {address.split("/", 2)[2] for address in loaded(stranger)}
    assert names == static().keys() - {"index.html"}


def test_a_file_is_kept_for_ever_under_a_name_of_its_version(stranger):
    for address in loaded(stranger):
        answer = stranger.ask(address)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == TYPES[address.rpartition(".")[2]]
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        again = stranger.ask(address, If_None_Match=answer.headers["ETag"])
        assert (again.status, again.body) == (304, b"")
    version = address.split("/")[1]
    assert stranger.ask(address.replace(version, "0" * 16)).status == 404


def test_the_page_is_asked_for_again(stranger):
    answer = stranger.ask("")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert stranger.ask("", If_None_Match=answer.headers["ETag"]).status == 304
    assert stranger.ask("", If_None_Match='"other"').body == answer.body
    assert stranger.ask("", "HEAD").body == b""


@pytest.mark.parametrize("path", ["", "api/session", "api/tenants", "static/x/app.js", "nowhere"])
def test_every_answer_says_what_a_browser_may_do(stranger, path):
    sent = stranger.ask(path).headers
    assert {name: sent[name] for name, _ in SECURITY_FIELDS} == dict(SECURITY_FIELDS)
    policy = sent["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_answers_of_the_service_are_kept_by_nobody(operator):
    assert operator.ask("api/tenants").headers["Cache-Control"] == "no-store"


def test_the_page_has_no_script_or_style_of_its_own(stranger):
    page = stranger.ask("").body.decode()
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", page) == []


def test_nothing_reads_markup_or_leaves_the_machine():
    names = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    texts = {name: path.read_text() for name, path in static().items() if name.endswith("js")}
    assert [(file, name) for file, text in texts.items() for name in names if name in text] == []
    # uPlot names its home in its first line.
    hosts = re.compile(r"https?://(?!www\.w3\.org/2000/svg|github\.com/leeoniya/uPlot )")
    assert [file for file, path in static().items() if hosts.search(path.read_text())] == []


@pytest.mark.skipif(not NPM.exists(), reason="no npm packages, which make console installs")
def test_libraries_are_the_bytes_of_the_pinned_packages():
    assert (
        subprocess.run([sys.executable, "tools/vendored", "--check"], check=False).returncode == 0
    )


def test_the_wheel_has_the_licence_of_each_library():
    lock = json.loads(Path("requirements/console/package-lock.json").read_text())
    shipped = {path for path, of in lock["packages"].items() if path and not of.get("dev")}
    for path in shipped:
        name = path.rpartition("/")[2]
        licence = (STATIC / "vendor" / f"LICENSE-{name}.txt").read_text()
        assert "Permission" in licence


@pytest.mark.parametrize("path", ["../app.py", "static/../../app.py", "static/", "static", "api/"])
def test_nothing_else_is_there(operator, path):
    assert operator.ask(path).status == 404


def test_other_methods_are_refused(operator):
    for path, allowed in {
        "": "GET, HEAD",
        "api/tenants": "GET, HEAD",
        "api/session": "GET, HEAD, POST, DELETE",
    }.items():
        answer = operator.ask(path, "PUT")
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)


def test_without_a_slash_the_address_is_mended(stranger):
    answer = stranger.request("/console")
    assert (answer.status, answer.headers["Location"]) == (308, "/console/")
