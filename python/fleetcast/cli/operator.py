"""`fleetcast operator …`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleetcast.cli.common import DURATION, Run, instant, table, with_run
from fleetcast.installation.lock import seen

if TYPE_CHECKING:
    from fleetcast.accounts import OpenSession
    from fleetcast.engine import OperatorToken


@click.group()
def operator() -> None:
    """Tokens that open the console, and the sessions they opened."""


@operator.command()
@click.option(
    "--name", default="", show_default=False, help="Name of the person who gets the token."
)
@click.option("--expires", type=DURATION, default="30d", help="Lifetime, such as 8h.")
@with_run
def token(run: Run, name: str, expires: int) -> None:
    """Issue a token for the console; its text is shown only now.

    Example: fleetcast operator token --name dana --expires 8h
    """
    with run.opened() as installation:
        issued = installation.operators.create(name=name, lifetime_seconds=expires)
        address = installation.settings.admin.address
    running = seen(run.data.lock)  # the service may run with another address than the settings name
    is_known = running.held and "admin" in running.note
    url = running.note["admin"] if is_known else address != "off" and f"http://{address}"
    document = {"token": str(issued.text), **_document(issued.record)}
    good = f"(token id {document['token_id']}, good until {document['expires_at']})"
    lines = [str(issued.text), good]
    if not url:
        lines.append("The console is on the private listener, which admin.address has off.")
    else:
        lines.append(f"Open {url}/console/ and give it there.")
    run.answer(document, "\n".join(lines))


@operator.command("list")
@with_run
def list_(run: Run) -> None:
    """List all tokens, also ended tokens."""
    with run.opened_to_read() as installation:
        rows = [_document(each) for each in installation.operators.all()]
    header = ("token_id", "name", "status", "created_at", "expires_at")
    run.answer({"tokens": rows}, table(header, [[row[name] for name in header] for row in rows]))


@operator.command()
@click.argument("token_id")
@with_run
def revoke(run: Run, token_id: str) -> None:
    """End a token, and the sessions it has opened, at once."""
    with run.opened() as installation:
        ended = installation.operators.revoke(token_id)
    run.answer(_document(ended), f"Revoked operator token {token_id}.")


@operator.command()
@click.option("--end", metavar="ID", help="End the session of this id at once.")
@with_run
def sessions(run: Run, end: str | None) -> None:
    """List the sessions that are open at the console, or end a session."""
    with run.opened_to_read() if end is None else run.opened() as installation:
        if end is not None:
            ended = installation.sessions.end(end)
            run.answer(_session_document(ended), f"Ended console session {end}.")
            return
        rows = [_session_document(each) for each in installation.sessions.all()]
    header = ("session_id", "name", "token_id", "client", "opened_at", "used_at", "expires_at")
    run.answer({"sessions": rows}, table(header, [[row[name] for name in header] for row in rows]))


def _session_document(session: OpenSession) -> dict[str, object]:
    record, token = session
    return {
        "session_id": record.session_id,
        "token_id": token.token_id,
        "name": token.name,
        "client": record.address,
        "opened_at": instant(record.opened_at),
        "used_at": instant(record.used_at),
        "expires_at": instant(record.expires_at),
    }


def _document(record: OperatorToken) -> dict[str, object]:
    return {
        "token_id": record.token_id,
        "name": record.name,
        "status": record.ended(int(time.time())) or "active",
        "created_at": instant(record.created_at),
        "expires_at": instant(record.expires_at),
        "revoked_at": instant(record.revoked_at),
    }
