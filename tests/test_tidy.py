"""Rules that no compiler checks: size of files, order of modules, homes of libraries, prose."""

import ast
import re
from collections import defaultdict

import pytest

from tests.tidy import english, prose, python, rust, silenced, words
from tests.tidy.assertions import without_assertion
from tests.tidy.files import ROOT, files
from tests.tidy.graph import circles
from tests.tidy.nouns import is_noun
from tests.tidy.python import imports

LINES_MAX = 600
LARGEST_SHOWN = 10
FUNCTION_LINES_MAX = 50
TYPES_MIN = 300

# Library -> the only places below python/fleetcast that import it.
IMPORTERS = {
    "fleetcast._core": ("engine/", "errors.py"),
    "falcon": ("http/", "adapters/"),
    "gunicorn": ("http/",),
    "google.protobuf": (),
    "grpc": ("grpc/", "client/"),
    "onnxruntime": ("forecast/onnx.py",),
    "paho": ("mqtt/session.py",),
}

# In parts, so that this file does not name what it looks for.
REGISTRY_HOSTS = [
    ".".join(parts).encode()
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("index", "crates", "io"),
        ("static", "crates", "io"),
        ("static", "rust-lang", "org"),
        ("sh", "rustup", "rs"),
        ("deb", "debian", "org"),
        ("registry", "npmjs", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
    )
]


def sources():
    """The files whose size counts: the service and the engine, not their tests or tools."""
    homes = {ROOT / "python", ROOT / "rust"}
    return [p for p in files() if p.suffix in (".py", ".rs") and homes & set(p.parents)]


def test_source_files_stay_small():
    sizes = sorted(((len(p.read_text().splitlines()), p) for p in sources()), reverse=True)
    for lines, path in sizes[:LARGEST_SHOWN]:
        print(f"{lines:5} {path.relative_to(ROOT)}")
    assert [f"{p.relative_to(ROOT)}: {lines}" for lines, p in sizes if lines > LINES_MAX] == []


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_library_has_one_home(library):
    package = ROOT / "python" / "fleetcast"
    elsewhere = [
        name
        for path in package.rglob("*.py")
        if not (name := path.relative_to(package).as_posix()).startswith(IMPORTERS[library])
        and any(f"{imported}.".startswith(f"{library}.") for imported in imports(path))
    ]
    assert elsewhere == []


def test_no_file_names_a_registry():
    # Cargo writes the name of the default registry into its lock file.
    texts = ((p, p.read_bytes()) for p in files() if p.name != "Cargo.lock" and p.suffix != ".so")
    assert [(p, h) for p, text in texts for h in REGISTRY_HOSTS if h in text] == []


def test_the_toolchain_is_the_machines_own():
    assert [p for p in files() if p.name in ("rust-toolchain", "rust-toolchain.toml")] == []


# Speakers to others: the clients, the bridge, which is one, and the demo and the benchmark, which
# play some; a command whose FILE is a socket; and `doctor`, which asks the private listener.
SPEAKERS = (
    *("bench/", "client/", "cli/demo/", "mqtt/", "output_file.py"),
    "installation/diagnosis/scrape.py",
)
CLIENT_LIBRARIES = ("http.client", "urllib.request", "ftplib", "smtplib", "xmlrpc", "socketserver")
CLIENT_CALLS = {
    *("connect", "connect_ex", "create_connection", "open_connection"),
    *("secure_channel", "insecure_channel", "urlopen"),
}


def test_the_service_opens_no_connections():
    package = ROOT / "python" / "fleetcast"
    found = []
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name.startswith(SPEAKERS):
            continue
        found += [(name, used) for used in imports(path) if used.startswith(CLIENT_LIBRARIES)]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in CLIENT_CALLS:
                found.append((name, node.attr))
    assert found == []


def test_the_page_on_security_names_tests_of_each_risk():
    sections = (ROOT / "docs" / "security.md").read_text().split("\n## ")[1:-1]
    assert [text.split()[0] for text in sections] == [f"API{number}" for number in range(1, 11)]
    assert [text for text in sections if "`tests/" not in text] == []


# A file that a page sends its reader to, and perhaps a name in it; folders may be left out.
CITED = re.compile(r"`((?:\w+/)+\w+\.(?:py|rs|json))(?:::(\w+))?`")
CITED_MIN = 300
HOMES = ("", "python", "python/fleetcast", "rust/core/src")
DEFINED = r"\b(?:def|class|fn|struct|const) {name}\b|^{name}\b"


def test_the_files_and_names_that_pages_cite_exist():
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "measurements"]
    cited = {found for page in pages for found in CITED.findall(page.read_text())}
    assert len(cited) >= CITED_MIN
    assert [(file, name) for file, name in cited if not is_there(file, name)] == []


def is_there(file, name):
    found = [path for home in HOMES if (path := ROOT / home / file).exists()]
    pattern = DEFINED.format(name=name)
    return any(not name or re.search(pattern, path.read_text(), re.MULTILINE) for path in found)


def test_modules_use_only_those_listed_above_them():
    assert [line for crate in rust.crates() for line in rust.out_of_order(crate)] == []


def test_files_import_each_other_in_no_circle():
    folders = [ROOT / "python" / "fleetcast", ROOT / "benches", ROOT / "tests"]
    of_python = [circle for top in folders for circle in circles(python.import_edges(top))]
    of_rust = [circle for crate in rust.crates() for circle in circles(rust.use_edges(crate))]
    assert of_python + of_rust == []


@pytest.mark.parametrize("language", [python, rust])
def test_functions_fit_a_screen(language):
    assert [f for f in language.functions() if f[1] > FUNCTION_LINES_MAX] == []


@pytest.mark.parametrize("types", [python.classes, rust.types])
def test_a_name_of_a_type_is_there_once(types):
    """In Rust less the classes of Python, which have the names of the types that they wrap."""
    homes = defaultdict(list)
    for name, file in types():
        homes[name].append(file)
    assert len(homes) >= TYPES_MIN
    doubled = {name: found for name, found in homes.items() if len(found) > 1}
    assert doubled == {}


def test_a_type_of_rust_is_a_noun():
    assert [(name, file) for name, file in rust.types() if not is_noun(name)] == []


def test_prose_begins_with_a_noun_or_a_verb():
    """No doc, comment or paragraph with What, Whether, Of, Where or Who."""
    assert prose.clauses() == []


def test_pages_are_wrapped():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    long = [fault for path in pages for fault in prose.too_wide(path)]
    assert long == []


def test_english_is_that_of_the_neighbours():
    assert english.out_of_range() == []


def test_the_glossary_is_sorted():
    rows = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert rows[0] == "word"
    assert rows[1:] == sorted(rows[1:], key=str.lower)


def test_the_decisions_are_listed():
    folder = ROOT / "docs" / "decisions"
    titles = {page.name: page.read_text().splitlines()[0] for page in folder.glob("0*.md")}
    rows = re.findall(
        r"^\| \[(\d+)\]\((.+?)\) \| (.+?) \|$", (folder / "README.md").read_text(), re.MULTILINE
    )
    assert rows == sorted(rows)
    listed = {file: f"# {number} {title}" for number, file, title in rows}
    assert listed == titles, "docs/decisions/README.md has a row for each decision, with its title"


def test_every_test_asserts_something():
    assert without_assertion() == []


def test_a_checker_is_silenced_for_a_reason():
    assert silenced.without_reason() == []


def test_replaced_words_do_not_come_back():
    assert words.replaced() == [], "docs/glossary.md has the words that took their place"
