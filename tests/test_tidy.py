"""What no compiler checks: size of files, homes of libraries, what may not be committed."""

import ast
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES_MAX = 600
LARGEST_SHOWN = 10

# Library -> the only places below python/fleetcast that import it.
IMPORTERS = {
    "fleetcast._core": ("engine.py", "errors.py"),
    "falcon": ("http/",),
    "gunicorn": ("http/",),
    "grpc": ("grpc/", "client/"),
    "onnxruntime": ("forecast/onnx.py",),
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
NOT_OURS = {".git", ".venv", ".venv-lock", "target", "fleetcast-data", "__pycache__"}


def files():
    """Every file of the project, less what is built, cached or stored."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in NOT_OURS and not f.endswith("_cache")]
        yield from (Path(folder, name) for name in names)


def sources():
    """The files whose size counts: the service and the engine, not their tests or tools."""
    homes = {ROOT / "python", ROOT / "rust"}
    return [p for p in files() if p.suffix in (".py", ".rs") and homes & set(p.parents)]


def test_source_files_stay_small():
    sizes = sorted(((len(p.read_text().splitlines()), p) for p in sources()), reverse=True)
    for lines, path in sizes[:LARGEST_SHOWN]:
        print(f"{lines:5} {path.relative_to(ROOT)}")
    assert [f"{p.relative_to(ROOT)}: {lines}" for lines, p in sizes if lines > LINES_MAX] == []


def imports(path):
    """Dotted names that a Python file imports; of `from a import b`, `a.b`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_library_has_one_home(library):
    package = ROOT / "python" / "fleetcast"
    strangers = [
        name
        for path in package.rglob("*.py")
        if not (name := path.relative_to(package).as_posix()).startswith(IMPORTERS[library])
        and any(f"{imported}.".startswith(f"{library}.") for imported in imports(path))
    ]
    assert strangers == []


def test_no_file_names_a_registry():
    # Cargo writes the name of the default registry into its lock file.
    texts = ((p, p.read_bytes()) for p in files() if p.name != "Cargo.lock" and p.suffix != ".so")
    assert [(p, h) for p, text in texts for h in REGISTRY_HOSTS if h in text] == []


def test_the_toolchain_is_the_machines_own():
    assert [p for p in files() if p.name in ("rust-toolchain", "rust-toolchain.toml")] == []


# What speaks to others: the clients, and the demo, which plays one.
SPEAKERS = ("client/", "cli/demo/")
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


def test_the_table_of_security_names_tests_that_exist():
    rows = [
        line
        for line in (ROOT / "docs" / "security.md").read_text().splitlines()
        if line.startswith("| API")
    ]
    assert [row.split()[1] for row in rows] == [f"API{number}" for number in range(1, 11)]
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named
        missing = [t for f, t in named if f"\ndef {t}(" not in (ROOT / f).read_text()]
        assert missing == []
