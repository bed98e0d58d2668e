"""A CycloneDX list of what is in the wheel and of what its extras bring, from the lock files."""

import json
import re
import subprocess
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)==(\S+)((?:.*\n)(?: +--hash=\S+.*\n?)+)", re.MULTILINE)


def write(file: Path, seconds: int, features: str) -> None:
    """Writes the list of this source tree, which was made at `seconds`; same in, same bytes out.

    Crates are those of an engine with `features`.
    """
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    components = [*crates(features), *packages()]
    identity = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([version, components]))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": "fleetcast",
                "name": "fleetcast",
                "version": version,
                "purl": f"pkg:pypi/fleetcast@{version}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
    }
    file.write_text(json.dumps(document, indent=1) + "\n")


def crates(features: str) -> Iterator[dict[str, object]]:
    """Crates of the compiled engine, those included that only build it: each with its hash."""
    tree = ["cargo", "tree", "--locked", "-p", "fleetcast-py", "-e", "normal,build"]
    lines = subprocess.check_output(
        [*tree, "--features", features, "--prefix", "none", "--format", "{p}|{l}"],
        cwd=ROOT,
        text=True,
    ).splitlines()
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(each["name"], each["version"]): each.get("checksum") for each in locked}
    found = {tuple(line.removesuffix(" (*)").split("|")) for line in lines}
    for crate, licence in sorted(found):
        name, version = crate.split()[0], crate.split()[1].removeprefix("v")
        checksum = hashes[name, version]
        if checksum is None:
            continue  # ours, in the component that all others are parts of
        yield {
            "type": "library",
            "bom-ref": f"crate:{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:cargo/{name}@{version}",
            "licenses": [{"expression": re.sub(" */ *", " OR ", licence)}],
            "hashes": [{"alg": "SHA-256", "content": checksum}],
        }


def packages() -> Iterator[dict[str, object]]:
    """Packages that the extras bring, as they were tested; the hashes are those of their files."""
    for name, version, hashes in PIN.findall((ROOT / "requirements" / "run.txt").read_text()):
        files = re.findall(r"--hash=sha256:(\w+)", hashes)
        yield {
            "type": "library",
            "bom-ref": f"package:{name}@{version}",
            "name": name,
            "version": version,
            "scope": "optional",
            "purl": f"pkg:pypi/{name}@{version}",
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"pkg:pypi/{name}@{version}",
                    "hashes": [{"alg": "SHA-256", "content": each} for each in files],
                }
            ],
        }
