"""`mergeyard token`: API tokens, over the API of a server or in the database of this machine."""

import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from msgspec.structs import replace

from mergeyard.cli.connection_options import YesOption, parse_repo_name
from mergeyard.cli.local_store import AdminSession, LocalStore, with_admin_session
from mergeyard.cli.output import (
    build_table,
    confirm,
    exit_with_message,
    exit_with_usage_error,
    format_time,
    plain_text,
    print_message,
    print_table,
    sanitize,
)
from mergeyard.client import ApiToken, ApiTokens, Client, RepoName
from mergeyard.domain.access import DEFAULT_SCOPES, Scope, Token
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import Instant

if TYPE_CHECKING:
    from mergeyard.service.tokens import Tokens

Result = TypeVar("Result")

app = typer.Typer(name="token", no_args_is_help=True, help="Create, list and revoke API tokens.")

LIFETIME_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@app.command()
@with_admin_session
def create(
    session: AdminSession,
    name: Annotated[str, typer.Option(help="Who uses the token; the audit log shows this name.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What the token can do. Repeat it for several. Default: read, submit and targets."),
    ] = None,
    repo: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REPO", help="Limit the token to this repository: host/owner/name. Repeat it for several."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When the token expires: in 12h, 90d or 8w. Default: never."),
    ] = None,
) -> None:
    """Create a token and print it. It is not shown again.

    Standard output has the token alone, so that a script can store it.

    Examples:
        mergeyard token create --name ci --scope read --scope status --expires 90d
        mergeyard token create --name ada --repo github.com/acme/app
    """
    created = _open(session).create_token(
        name,
        scopes=scope,
        repositories=[parse_repo_name(each) for each in repo or ()],
        expires_at=None if expires is None else datetime.now(UTC) + _parse_lifetime(expires),
    )
    show_created(session, created)


def show_created(session: AdminSession, created: ApiToken) -> None:
    """The response to a repeated request has no secret: the first response was lost on the way."""
    if created.secret is None:
        message = f"The token {created.name} was created, but the response that contains it was lost."
        exit_with_message(message, hint=f"Revoke it with `mergeyard token revoke {created.id}`, then create another.")
    print_message(f"Created the token {created.name}. {_describe(created)} The token is not shown again.")
    session.show(created, lambda: typer.echo(sanitize(created.secret or "")))


@app.command("list")
@with_admin_session
def show(session: AdminSession) -> None:
    """List all tokens, newest first, without their secrets.

    Examples:
        mergeyard token list
        mergeyard token list --json
    """
    tokens = _open(session).list_tokens()
    table = build_table("id", "name", "scopes", "repositories", "created", "expires", "state", "last used", "from")
    for token in tokens.tokens:
        cells = (
            token.id,
            token.name,
            " ".join(token.scopes),
            " ".join(map(str, token.repositories)) or "all",
            format_time(token.created_at),
            "never" if token.expires_at is None else format_time(token.expires_at),
            _format_state(token),
            "never" if token.last_used_at is None else format_time(token.last_used_at),
            token.last_used_from or "–",
        )
        table.add_row(*map(plain_text, cells))
    session.show(tokens, lambda: print_table(table, "No tokens. Create one with `mergeyard token create`."))


@app.command()
@with_admin_session
def revoke(
    session: AdminSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name or id, as `mergeyard token list` shows it.")],
    yes: YesOption = False,
) -> None:
    """Revoke a token, effective immediately.

    Sessions that were started with the token end too.

    Examples:
        mergeyard token revoke ci
        mergeyard token revoke 7e4729b49fce --yes
    """
    tokens = _open(session)
    match _find(tokens.list_tokens().tokens, name):
        case [token]:
            confirm(f"Revoke the token {token.name}? {_describe(token)} Its next request is refused.", yes)
            revoked = tokens.revoke_token(token.id)
            session.show(revoked, lambda: print_message(f"Revoked {revoked.name}."))
        case []:
            message = f"No token with the name or id {sanitize(name)} is valid."
            exit_with_message(message, hint="`mergeyard token list` shows all tokens.")
        case found:
            ids = "\n".join(f"  {each.id}" for each in found)
            exit_with_message(f"Several tokens have the name {sanitize(name)}.", hint=f"Revoke one by its id:\n{ids}")


def _find(tokens: Iterable[ApiToken], name_or_id: str) -> list[ApiToken]:
    """The token with this id, else all with this name that are not revoked."""
    listed = list(tokens)
    with_name = [token for token in listed if token.name == name_or_id and token.revoked_at is None]
    return [token for token in listed if token.id == name_or_id] or with_name


def _describe(token: ApiToken) -> str:
    repos = f" Repositories: {', '.join(map(str, token.repositories))}." if token.repositories else ""
    expiry = "never" if token.expires_at is None else format_time(token.expires_at)
    return f"Scopes: {', '.join(token.scopes)}.{repos} Expires: {expiry}."


def _format_state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.expires_at is None or datetime.now(UTC) < token.expires_at else "expired"


def _parse_lifetime(text: str) -> timedelta:
    match = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text)
    if match is None:
        exit_with_usage_error(f"{sanitize(text)} is not a duration: write --expires 12h, 90d or 8w.")
    return timedelta(**{LIFETIME_UNITS[match[2]]: int(match[1])})


class LocalTokens:
    """The tokens in the database of this machine, with the methods of the client."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def create_token(
        self,
        name: str,
        *,
        scopes: Iterable[str] | None = None,
        repositories: Iterable[RepoName] = (),
        expires_at: datetime | None = None,
    ) -> ApiToken:
        token, secret = self._run(
            lambda tokens: tokens.create(
                name,
                DEFAULT_SCOPES if scopes is None else [Scope(scope) for scope in scopes],
                [Repo(repo.host, repo.owner, repo.name) for repo in repositories],
                expires_at=None if expires_at is None else Instant(int(expires_at.timestamp() * 1000)),
            )
        )
        return replace(_to_model(token), secret=secret)

    def list_tokens(self) -> ApiTokens:
        return ApiTokens(tokens=tuple(map(_to_model, self._run(lambda tokens: tokens.list_manageable(None)))))

    def revoke_token(self, token_id: str) -> ApiToken:
        revoked = self._run(lambda tokens: tokens.revoke(token_id))
        return _to_model(revoked) if revoked else exit_with_message(f"There is no token with the id {token_id}.")

    def _run(self, use: "Callable[[Tokens], Awaitable[Result]]") -> Result:
        from mergeyard.wiring import open_tokens

        return self._store.run(open_tokens, use)


def _open(session: AdminSession) -> Client | LocalTokens:
    return session.client if session.local_store is None else LocalTokens(session.local_store)


def _to_model(token: Token) -> ApiToken:
    """In the form of the API, so that `--json` prints the same in both cases."""
    from mergeyard.api.tokens import present_token

    return msgspec.convert(msgspec.to_builtins(present_token(token)), ApiToken)
