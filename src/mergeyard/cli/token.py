"""`mergeyard token`: API tokens. The commands write to the store directly, also while a server runs."""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mergeyard.cli.connection_options import parse_repo
from mergeyard.cli.local_store import LocalStore, with_local_store
from mergeyard.cli.output import (
    build_table,
    encode_json,
    exit_with_message,
    format_time,
    plain_text,
    print_message,
    print_table,
)
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
    table = build_table("id", "name", "scopes", "repositories", "created", "expires", "state", "last used", "from")
    for token in tokens:
        table.add_row(*(plain_text(_format_cell(value)) for value in _to_members(token).values()))
    print_table(table, "No tokens. Create one with `mergeyard token create`.")


@app.command()
@with_local_store
def revoke(
    store: LocalStore,
    token: Annotated[str, typer.Argument(metavar="NAME", help="Its name or id, as `mergeyard token list` shows it.")],
) -> None:
    """Revoke a token, effective immediately."""
    found = _run_with_tokens(store, lambda tokens: _revoke_by_name(tokens, token))
    match found:
        case [revoked]:
            print_message(f"Revoked {revoked.name}.")
        case []:
            exit_with_message(
                f"No token with the name or id {token} is valid: `mergeyard token list` shows all tokens."
            )
        case _:
            ids = "\n".join(f"  {each.id}" for each in found)
            exit_with_message(f"Several tokens have the name {token}. Revoke one by its id:\n{ids}")


async def _revoke_by_name(tokens: "Tokens", name_or_id: str) -> list[Token]:
    """The tokens with this id or name, of which a single one is revoked. A name does not find revoked tokens."""
    listed = await tokens.list_all()
    with_name = [token for token in listed if token.name == name_or_id and token.revoked_at is None]
    found = [token for token in listed if token.id == name_or_id] or with_name
    if len(found) == 1:
        await tokens.revoke(found[0].id)
    return found


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


def _to_members(token: Token) -> dict[str, str | datetime | None]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": " ".join(sorted(token.scopes)),
        "repositories": " ".join(sorted(map(str, token.repos))) or None,
        "created": _to_datetime(token.created_at),
        "expires": _to_datetime(token.expires_at),
        "state": _token_state(token),
        "last_used": _to_datetime(token.last_used_at),
        "last_used_from": token.last_used_from or None,
    }


def _format_cell(value: str | datetime | None) -> str:
    return format_time(value) if isinstance(value, datetime) else value or "–"


def _token_state(token: Token) -> str:
    from mergeyard.adapters.clock import WallClock

    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.is_valid(WallClock().now()) else "expired"


def _to_datetime(instant: Instant | None) -> datetime | None:
    return None if instant is None else datetime.fromtimestamp(instant / 1000, UTC)
