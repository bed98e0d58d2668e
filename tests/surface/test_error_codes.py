"""Every error that a request may end with has a row in the table of codes."""

import ast
import re
from pathlib import Path

import pytest

import fleetcast
from fleetcast import errors
from fleetcast.accounts import ControlStoreUnavailable
from fleetcast.errors import OperatorError, Refused
from fleetcast.forecast.serving.store import PredictionStoreUnavailable
from fleetcast.surface.error_codes import ERROR_CODES, refusal_of

ROOT = Path(__file__).parent.parent.parent
DOMAIN_ERRORS = [
    *(kind for kind in vars(errors).values() if isinstance(kind, type)),
    *(ControlStoreUnavailable, PredictionStoreUnavailable),
]


def raised_codes():
    """Codes of the refusals that Python raises, and of those that the engine raises."""
    for path in Path(fleetcast.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refused":
                parts = ast.walk(node.args[0])
                yield from (part.value for part in parts if isinstance(part, ast.Constant))
    binding = (ROOT / "rust" / "py" / "src" / "errors.rs").read_text()
    for found in re.finditer(r'(?:^ +|=> |\(\()"(\w+)"', binding, re.MULTILINE):
        yield found[1]
    calls = "".join(path.read_text() for path in (ROOT / "rust" / "grpc" / "src").glob("*.rs"))
    refusal = r'(?:CallRefusal::(?:new|fault)\(\s*|code: )"(\w+)"'
    yield from (found[1] for found in re.finditer(refusal, calls))
    service = ROOT / "rust" / "service" / "src"
    parts = [*service.glob("admission/*.rs"), *service.glob("clients/*.rs")]
    for path in (*parts, service / "refusal.rs"):
        if path.name != "tests.rs":
            code = r'(?:Refusal::new\(|Self::new\(|refuse\(|=> )"(\w+)"'
            yield from (found[1] for found in re.finditer(code, path.read_text()))


def test_every_code_that_is_raised_has_a_row():
    raised = set(raised_codes())
    assert {"rate_limited", "auth_unavailable", "batch_too_large", "interval_too_fine"} <= raised
    assert raised <= set(ERROR_CODES)


@pytest.mark.parametrize("kind", [k for k in DOMAIN_ERRORS if not issubclass(k, OperatorError)])
def test_every_domain_error_has_a_row(kind):
    error = kind("invalid_input", {}) if issubclass(kind, Refused) else kind()
    for ingest in (False, True):
        assert refusal_of(error, ingest=ingest).args[0] in ERROR_CODES


@pytest.mark.parametrize("code", [code for code, row in ERROR_CODES.items() if row.grpc])
def test_every_code_says_whether_to_come_back(code):  # L6
    row = ERROR_CODES[code]
    comes_back = row.grpc == "UNAVAILABLE" or code == "ingest_buffer_full"
    assert (row.retry_seconds is not None) is comes_back


def test_every_row_is_sent_somewhere():
    assert [code for code, row in ERROR_CODES.items() if not (row.http or row.grpc)] == []
