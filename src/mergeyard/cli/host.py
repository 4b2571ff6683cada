"""`mergeyard host`: checks whether a Git host grants everything that the service needs."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from mergeyard.cli.local_store import ConfigFileOption, load_settings
from mergeyard.cli.output import encode_json, exit_with_message, sanitize
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import Finding, Host

app = typer.Typer(name="host", no_args_is_help=True, help="Check Git hosts.")


@app.callback()
def hosts() -> None:
    """Keeps `check` a subcommand: Typer would otherwise merge a single command into its group."""


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(help="Its name in the settings file, such as github.com; or github.com/acme/app.")
    ],
    repo: Annotated[str | None, typer.Option(metavar="REPO", help="Also check this repository: owner/name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    config: ConfigFileOption = None,
) -> None:
    """Report which permission, webhook or setting is missing at a Git host.

    The command checks the account, its permissions and the webhook; with --repo also the default branch. A Git host
    does not show all its rules, so only the first merge proves that the target branch can be pushed.

    Run it where the settings file and the secrets of the server are. It exits with 1 if something is missing.

    Examples:
        mergeyard host check github.com
        mergeyard host check github.com/acme/app
    """
    from mergeyard.wiring import make_hosts

    name, _, path = name.partition("/")
    repo = repo or path or None
    host = make_hosts(load_settings(config, {})).get(name.lower())
    if host is None:
        exit_with_message(
            f"The settings contain no host {sanitize(name)}.", hint=f'Add it as a table [hosts."{sanitize(name)}"].'
        )
    findings = asyncio.run(_diagnose(host, None if repo is None else _parse_repo(host, repo)))
    if as_json:
        typer.echo(encode_json({"host": host.name, "findings": findings}))
    else:
        for finding in findings:
            color = None if finding.ok else typer.colors.RED
            typer.secho(f"{'✓' if finding.ok else '✗'} {sanitize(finding.message)}", fg=color)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


async def _diagnose(host: Host, repo: Repo | None) -> Sequence[Finding]:
    from mergeyard.service.repositories import diagnose_host

    try:
        return await diagnose_host(host, repo)
    finally:
        await host.close()


def _parse_repo(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        exit_with_message(f"{text} is not a repository name: write --repo owner/name.")
    return Repo(host.name, owner, name)
