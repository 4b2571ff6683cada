"""Commands around hosts: whether everything is there that the service needs."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from mergeyard import wiring
from mergeyard.cli.exits import stop_with
from mergeyard.cli.options import ConfigFile, load_settings
from mergeyard.cli.plainly import clean, in_json
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import Host
from mergeyard.service.examining import examined

app = typer.Typer(name="host", no_args_is_help=True, help="Hosts of repositories.")


@app.callback()
def hosts() -> None:
    """A group, though it has one command."""


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="As the settings name it, such as github.com.")],
    repo: Annotated[str | None, typer.Option(help="Also what is needed in this repository: owner/name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: ConfigFile = None,
) -> None:
    """Tell in plain words which permission, webhook or setting is missing at a host."""
    host = wiring.make_hosts(load_settings(config, {})).get(name.lower())
    if host is None:
        stop_with(f"There is no host {name} in the settings: add it as a table [hosts.{name!r}].")
    findings = asyncio.run(_examined(host, None if repo is None else _repo_at(host, repo)))
    if as_json:
        typer.echo(in_json(findings))
    else:
        for finding in findings:
            color = None if finding.fine else typer.colors.RED
            typer.secho(f"{'✓' if finding.fine else '✗'} {clean(finding.words)}", fg=color)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


async def _examined(host: Host, repo: Repo | None) -> Sequence[Finding]:
    try:
        return await examined(host, repo)
    finally:
        await host.close()


def _repo_at(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        stop_with(f"{text} names no repository: write --repo owner/name.")
    return Repo(host.name, owner, name)
