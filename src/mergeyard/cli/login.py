"""`mergeyard login`, `logout` and `server`: the servers that the user signed in to. `mergeyard version`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from mergeyard import __version__
from mergeyard.cli import servers
from mergeyard.cli.connection_options import COMPLETION_RETRY_POLICY, JsonOption, complete_servers
from mergeyard.cli.output import (
    build_table,
    can_ask,
    encode_json,
    exit_with_usage_error,
    format_time,
    plain_text,
    print_hint,
    print_message,
    print_table,
    sanitize,
)
from mergeyard.cli.session import ServerSession, exit_on_client_errors, open_client, with_server_session
from mergeyard.client import CurrentToken, RetryPolicy

app = typer.Typer(name="server", no_args_is_help=True, help="List and choose the servers that you signed in to.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="As `mergeyard server list` shows it.", autocompletion=complete_servers)
]
ServersJsonOption = Annotated[bool, typer.Option("--json", help="Print your servers as JSON, without the tokens.")]
LOGIN_RETRY_POLICY = RetryPolicy(total_timeout_s=0, response_timeout_s=10)
"""A wrong URL is reported at once."""


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of the server.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A name for the server. Default: its host name.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="A file with the token; - is standard input."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in to a server with an API token.

    The command asks for the token, checks it at the server, stores it in a file that only you can read, and makes this
    server the default.

    Examples:
        mergeyard login https://queue.example.com
        mergeyard login https://queue.example.com --name work --token-file -
    """
    try:
        url = servers.normalize_url(url)
        name = choose_name(servers.read_servers(), url, name)
        if servers.is_exposed(url):
            print_hint("This connection is not encrypted, so others can read the token. Use an https URL.")
        token = ask_for_token(url) if token_file is None else servers.read_token_file(token_file)
        with exit_on_client_errors(lambda: url), open_client(url, token, LOGIN_RETRY_POLICY) as client:
            current = client.get_current_token()
        stored = servers.read_servers()  # again: another sign-in can have ended meanwhile
        known = {**stored.servers, name: servers.StoredServer(url, token)}
        file = servers.write_servers(replace(stored, default=name, servers=known))
    except servers.ServerError as error:
        exit_with_usage_error(str(error), hint=error.hint)
    if as_json:
        typer.echo(encode_json(current))
    print_message(f"Signed in to {name} with the token {current.name} ({describe_token(current)}).")
    print_message(f"{name} is now the default server. The token is stored in {file}.")


def choose_name(stored: servers.StoredServers, url: str, name: str | None) -> str:
    """The given name, else that of the last sign-in to this URL, else its host."""
    name = name or stored.find_name(url) or servers.name_server(url)
    if not servers.is_valid_name(name):
        raise servers.ServerError(
            f"{sanitize(name)} cannot be the name of a server.", "Pass --name with letters, digits, dots and dashes."
        )
    if name in stored.servers and stored.servers[name].url != url:
        advice = f"Choose another name with --name, or remove it first with `mergeyard logout {name}`."
        raise servers.ServerError(f"{name} is the name of {stored.servers[name].url}.", advice)
    return name


def ask_for_token(url: str) -> str:
    if not can_ask():
        raise servers.ServerError("No token is given.", "Pass a file with --token-file, or - for standard input.")
    print_hint(f"An administrator creates tokens at {sanitize(url)}/administration/tokens.")
    return typer.prompt("Token", hide_input=True, err=True).strip()


def describe_token(token: CurrentToken) -> str:
    expiry = "never expires" if token.expires_at is None else f"expires {format_time(token.expires_at)}"
    return f"scopes: {', '.join(token.scopes)}; {expiry}"


def logout(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The server. Default: the default one.", autocompletion=complete_servers),
    ] = None,
    as_json: ServersJsonOption = False,
) -> None:
    """Remove a server and its token from this machine.

    The token stays valid. `mergeyard token revoke` ends it.

    Examples:
        mergeyard logout
        mergeyard logout queue.example.com
    """
    try:
        stored = servers.read_servers()
        chosen = name or stored.default
        if chosen is None:
            raise servers.ServerError("No default server is set.", "`mergeyard server list` shows all servers.")
        require_known(stored, chosen)
        others = {each: server for each, server in stored.servers.items() if each != chosen}
        only = next(iter(others)) if len(others) == 1 else None
        default = only if stored.default in (chosen, None) else stored.default
        left = servers.StoredServers(default, others)
        servers.write_servers(left)
    except servers.ServerError as error:
        exit_with_usage_error(str(error), hint=error.hint)
    if as_json:
        print_servers(left)
    print_message(f"Removed {chosen} and its token from this machine. The token itself stays valid.")
    if default is not None:
        print_message(f"The default server is {default}.")
    elif others:
        print_hint("Choose the default server with `mergeyard server use NAME`.")


def require_known(stored: servers.StoredServers, name: str) -> None:
    if name not in stored.servers:
        advice = "`mergeyard server list` shows all servers."
        raise servers.ServerError(f"No stored server has the name {sanitize(name)}.", advice)


@app.command("list")
def list_command(as_json: ServersJsonOption = False) -> None:
    """List the servers that you signed in to.

    Examples:
        mergeyard server list
        mergeyard server list --json
    """
    try:
        stored = servers.read_servers()
    except servers.ServerError as error:
        exit_with_usage_error(str(error), hint=error.hint)
    if as_json:
        print_servers(stored)
        return
    table = build_table("name", "url", "default")
    for name, server in stored.servers.items():
        table.add_row(plain_text(name), plain_text(server.url), "default" if name == stored.default else "")
    print_table(table, "No servers. Sign in with `mergeyard login URL`.")


def print_servers(stored: servers.StoredServers) -> None:
    listed = [
        {"name": name, "url": server.url, "isDefault": name == stored.default}
        for name, server in stored.servers.items()
    ]
    typer.echo(encode_json({"servers": listed}))


@app.command("use")
def use(name: NameArgument, as_json: ServersJsonOption = False) -> None:
    """Choose the default server.

    Examples:
        mergeyard server use work
    """
    try:
        stored = servers.read_servers()
        require_known(stored, name)
        stored = replace(stored, default=name)
        servers.write_servers(stored)
    except servers.ServerError as error:
        exit_with_usage_error(str(error), hint=error.hint)
    if as_json:
        print_servers(stored)
    print_message(f"The default server is {name}.")


@with_server_session
def version(session: ServerSession) -> None:
    """Print the version of this program, and of the server if it responds.

    Examples:
        mergeyard version
        mergeyard version --json
    """
    show_version(session)


def show_version(session: ServerSession) -> None:
    """The server is left out where none is configured, or where it does not respond within a second."""
    server_version = None
    if session.is_configured and session.has_token:
        session.client.retry_policy = COMPLETION_RETRY_POLICY
        current = session.read_if_possible(session.client.get_current_token)
        server_version = None if current is None else current.server_version
    if session.as_json:
        server = None if server_version is None else {"name": session.server.name, "version": server_version}
        typer.echo(encode_json({"version": __version__, "server": server}))
        return
    typer.echo(f"mergeyard {__version__}")
    if server_version is not None:
        typer.echo(f"server {sanitize(session.server.name)} {sanitize(server_version)}")
