"""An operator after power cuts inside `master-key rotate`, for `rust/faults`.

The first argument is a folder. The second, if there is one, names the file of the new key in the
installation. Each line of the input is a question about the installation in the folder, and the
answer is a line: `ok`, or what is wrong.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from fleetcast.cli.main import run
from fleetcast.security.handover import HANDOVER_FILE

from .test_master_key import ended, is_whole, make_house, master_key, opens_nothing


def call(*arguments):
    """Runs a command and gives its JSON answer."""
    with redirect_stdout(io.StringIO()) as out:
        assert run([*map(str, arguments), "--json"]) == 0, arguments
    return json.loads(out.getvalue())


def fail(*arguments):
    """Runs a command that fails and gives its lines on stderr."""
    with redirect_stderr(io.StringIO()) as err:
        assert run([*map(str, arguments)]) == 1, arguments
    return err.getvalue().splitlines()


def names(data):
    """Returns the names of files, without locks and the 74 bytes of a revision that broke off."""
    paths = (path for path in data.rglob("*") if "lock" not in path.name)
    return {str(path.relative_to(data)) for path in paths if "revision-" not in path.name}


class Operator:
    """Makes an installation, and looks at it after power cuts."""

    def __init__(self, root: Path, new_key: str | None = None) -> None:
        self._data = root / "data"
        self._file = new_key and self._data / new_key
        os.environ["FLEETCAST_DATA"] = str(self._data)

    def make(self) -> None:
        """Makes the installation."""
        assert run(["init"]) == 0
        self._house = make_house(call, self._data, self._data / "records.jsonl")
        self._old = master_key(self._data)
        self._names = names(self._data)

    def look(self) -> None:
        """Ends the turn. All can be read before and after it, and by the new key alone."""
        assert is_whole(self._data, *self._house)
        is_begun = (self._data / HANDOVER_FILE).exists()
        if is_begun or master_key(self._data) == self._old:
            assert ended(call, self._data, self._file)
            assert is_whole(self._data, *self._house)
        assert opens_nothing(self._data, self._old, call, fail)
        assert is_whole(self._data, *self._house)
        left = names(self._data) ^ self._names
        assert left <= {self._file and self._file.name}, left

    def answered(self) -> None:
        """Looks at an installation in which the command had answered before the cut."""
        assert (master_key(self._data) == self._old) == (self._file is not None)
        assert (self._data / HANDOVER_FILE).exists() == (self._file is not None)
        self.look()


def main() -> None:
    operator = Operator(Path(sys.argv[1]), *sys.argv[2:])
    answers = sys.stdout
    sys.stdout = sys.stderr
    for question in sys.stdin:
        try:
            getattr(operator, question.strip())()
            answer = "ok"
        except Exception:  # noqa: BLE001 - the answer says which
            answer = repr(traceback.format_exc(limit=-3))
        print(answer, file=answers, flush=True)


if __name__ == "__main__":
    main()
