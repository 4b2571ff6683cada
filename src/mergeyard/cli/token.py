"""Commands around API tokens; they work beside a running server."""

import re
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from mergeyard.adapters.clock import WallClock
from mergeyard.cli.exits import stop_with
from mergeyard.cli.opening import store_settings, with_store
from mergeyard.cli.options import ConfigFile, DatabaseUrl, DataDir, repo_named
from mergeyard.cli.plainly import in_json, plain, say
from mergeyard.cli.terminal import put
from mergeyard.domain.instants import DAY, HOUR, Instant
from mergeyard.domain.tokens import DEFAULT_SCOPES, Scope, Token
from mergeyard.wiring import open_tokens

app = typer.Typer(name="token", no_args_is_help=True, help="API tokens.")

UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY}


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Who uses it; shown wherever something was done with it.")],
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may do: read, submit and targets if none.")] = None,
    repo: Annotated[list[str] | None, typer.Option(help="Only this repository: host/owner/name.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends: 12h, 90d, 8w. Without: never.")] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a token and print it, this once."""
    settings = store_settings(config, data_dir, database_url)
    repos, lifetime = [repo_named(each) for each in repo or ()], _lifetime(expires)
    made = with_store(
        open_tokens, settings, lambda tokens: tokens.create(name, scope or DEFAULT_SCOPES, repos, lifetime)
    )
    typer.echo(made[1])


@app.command("list")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List all tokens, without their secrets."""
    settings = store_settings(config, data_dir, database_url)
    tokens = with_store(open_tokens, settings, lambda tokens: tokens.all())
    if as_json:
        typer.echo(in_json([_described(token) for token in tokens]))
        return
    table = Table("id", "name", "scopes", "repositories", "created", "expires", "state", "last used", "from")
    for token in tokens:
        table.add_row(*(plain(value or "–") for value in _described(token).values()))
    put(table)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard token list` shows it.")],
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Take a token back, at once."""
    settings = store_settings(config, data_dir, database_url)
    revoked = with_store(open_tokens, settings, lambda tokens: tokens.revoke(token_id))
    if revoked is None:
        stop_with(f"There is no token {token_id}: `mergeyard token list` shows those there are.")
    say(f"Revoked {revoked.name} ({revoked.id}).")


def _lifetime(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text)
    if found is None:
        stop_with(f"{text} is no time: write --expires 12h, 90d or 8w.")
    return int(found[1]) * UNITS[found[2]]


def _described(token: Token) -> dict[str, str | None]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": " ".join(sorted(token.scopes)),
        "repositories": " ".join(sorted(map(str, token.repos))) or None,
        "created": _date(token.created_at),
        "expires": _date(token.expires_at),
        "state": _state(token),
        "last_used": _date(token.last_used_at),
        "last_used_from": token.last_used_from or None,
    }


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.valid(WallClock().now()) else "expired"


def _date(instant: Instant | None) -> str | None:
    return None if instant is None else datetime.fromtimestamp(instant / 1000, UTC).strftime("%Y-%m-%d %H:%M")
