"""`mergeyard token`: API tokens. The commands write to the store directly, also while a server runs."""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.table import Table

from mergeyard.cli.connection_options import parse_repo
from mergeyard.cli.local_store import LocalStore, with_local_store
from mergeyard.cli.output import encode_json, exit_with_message, plain_text, print_message, print_output
from mergeyard.domain.access import DEFAULT_SCOPES, Scope, Token
from mergeyard.domain.timestamps import DAY, HOUR, Instant

if TYPE_CHECKING:
    from mergeyard.service.tokens import Tokens

Result = TypeVar("Result")

app = typer.Typer(name="token", no_args_is_help=True, help="API tokens.")

LIFETIME_UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY}


@app.command()
@with_local_store
def create(
    store: LocalStore,
    name: Annotated[str, typer.Option(help="Who uses it; shown in the audit log.")],
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it can do; default: read, submit and targets.")
    ] = None,
    repo: Annotated[list[str] | None, typer.Option(help="Restrict it to this repository: host/owner/name.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it expires: 12h, 90d, 8w. Default: never.")] = None,
) -> None:
    """Create a token and print it; it is not shown again."""
    repos, lifetime = [parse_repo(each) for each in repo or ()], _parse_lifetime(expires)
    created = _run_with_tokens(store, lambda tokens: tokens.create(name, scope or DEFAULT_SCOPES, repos, lifetime))
    typer.echo(created[1])


@app.command("list")
@with_local_store
def show(store: LocalStore, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """List all tokens, without their secrets."""
    tokens = _run_with_tokens(store, lambda tokens: tokens.list_all())
    if as_json:
        typer.echo(encode_json([_to_members(token) for token in tokens]))
        return
    table = Table("id", "name", "scopes", "repositories", "created", "expires", "state", "last used", "from")
    for token in tokens:
        table.add_row(*(plain_text(value or "–") for value in _to_members(token).values()))
    print_output(table)


@app.command()
@with_local_store
def revoke(
    store: LocalStore,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard token list` shows it.")],
) -> None:
    """Revoke a token, effective immediately."""
    revoked = _run_with_tokens(store, lambda tokens: tokens.revoke(token_id))
    if revoked is None:
        exit_with_message(f"There is no token {token_id}: `mergeyard token list` shows all tokens.")
    print_message(f"Revoked {revoked.name} ({revoked.id}).")


def _run_with_tokens(store: LocalStore, use: "Callable[[Tokens], Awaitable[Result]]") -> Result:
    from mergeyard.wiring import open_tokens

    return store.run(open_tokens, use)


def _parse_lifetime(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text)
    if match is None:
        exit_with_message(f"{text} is not a duration: write --expires 12h, 90d or 8w.")
    return int(match[1]) * LIFETIME_UNITS[match[2]]


def _to_members(token: Token) -> dict[str, str | None]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": " ".join(sorted(token.scopes)),
        "repositories": " ".join(sorted(map(str, token.repos))) or None,
        "created": _format_time(token.created_at),
        "expires": _format_time(token.expires_at),
        "state": _token_state(token),
        "last_used": _format_time(token.last_used_at),
        "last_used_from": token.last_used_from or None,
    }


def _token_state(token: Token) -> str:
    from mergeyard.adapters.clock import WallClock

    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.is_valid(WallClock().now()) else "expired"


def _format_time(instant: Instant | None) -> str | None:
    return None if instant is None else datetime.fromtimestamp(instant / 1000, UTC).strftime("%Y-%m-%d %H:%M")
