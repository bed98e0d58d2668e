"""Completion: the scripts of click, and what they ask this program for."""

import os
import shutil
import subprocess
import sys

import pytest

from fleetcast.cli.main import fleetcast


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(call, shell):
    answer = call("completion", shell)
    assert answer["shell"] == shell
    assert f"_FLEETCAST_COMPLETE={shell}_complete" in answer["script"]


def test_another_shell_is_refused(fail):
    assert "bash" in fail("completion", "tcsh")[0]


def test_bash_completes_commands_options_and_choices(call, tmp_path):
    script = tmp_path / "completion"
    script.write_text(call("completion", "bash")["script"])
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "fleetcast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m fleetcast "$@"\n')
    program.chmod(0o700)
    bash = shutil.which("bash")
    assert bash

    def completed(*words):
        count = len(words) - 1
        ask = (
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={count};"
            ' _fleetcast_completion fleetcast; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            [bash, "--norc", "-c", f". {script}; {ask}"],
            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    assert completed("fleetcast", "''") == set(fleetcast.list_commands(None))
    assert completed("fleetcast", "comp") == {"compact", "completion"}
    assert completed("fleetcast", "tls", "ren") == {"renew"}
    assert completed("fleetcast", "status", "--j") == {"--json"}
    assert completed("fleetcast", "completion", "z") == {"zsh"}
    assert completed("fleetcast", "serve", "--set", "limits.tags") == {"limits.tags_max"}
    for name in ("acme", "acme-test", "buoys"):
        call("tenant", "create", name)
    assert completed("fleetcast", "tenant", "show", "ac") == {"acme", "acme-test"}
    assert completed("fleetcast", "export", "--tenant", "b") == {"buoys"}
    assert completed("fleetcast", "verify", "acme", "bu") == {"buoys"}
    ids = [
        call("key", "create", name, "--scope", "topology:read")["key_id"]
        for name in ("acme", "buoys", "buoys")
    ]
    call("key", "revoke", ids[2])
    assert completed("fleetcast", "key", "revoke", "''") == set(ids[:2])
    assert completed("fleetcast", "key", "rotate", ids[0][:6]) == {ids[0]}
    assert completed("fleetcast", "describe", "--data", str(tmp_path / "none"), "ac") == set()
