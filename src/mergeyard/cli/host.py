"""`mergeyard host`: checks whether a Git host grants everything that the service needs."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from mergeyard.cli.local_store import ConfigFileOption, load_settings
from mergeyard.cli.output import encode_json, exit_with_message, print_message, sanitize
from mergeyard.domain.ids import Repo
from mergeyard.ports.archive import SCHEMA_VERSION
from mergeyard.ports.forge import Finding, Host, QueueSetup
from mergeyard.ports.git import Identity
from mergeyard.ports.store import StoreUnavailable

if TYPE_CHECKING:
    from mergeyard.settings import Settings

app = typer.Typer(name="host", no_args_is_help=True, help="Check Git hosts.")

OPENPGP_MARKER = "-----BEGIN PGP"


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
    public_key: Annotated[
        bool, typer.Option("--public-key", help="Only print the public key of the key that signs commits.")
    ] = False,
    config: ConfigFileOption = None,
) -> None:
    """Report which permission, webhook or setting is missing at a Git host.

    The command checks the account, its permissions and the webhook. With a repository it also reads the rules of the
    target branch of each queue, or of the default branch if the repository has no queue. A Git host does not show all
    its rules, so only the first merge proves that the queue can merge. The command also shows which key signs commits.

    Run it where the settings file, the secrets and the database of the server are. It changes nothing, and exits with
    1 if something is missing.

    Examples:
        mergeyard host check github.com
        mergeyard host check github.com/acme/app
        mergeyard host check github.com --public-key
    """
    from mergeyard.wiring import make_hosts, make_identities

    name, _, path = name.partition("/")
    repo = repo or path or None
    settings = load_settings(config, {})
    host = make_hosts(settings).get(name.lower())
    if host is None:
        exit_with_message(
            f"The settings contain no host {sanitize(name)}.", hint=f'Add it as a table [hosts."{sanitize(name)}"].'
        )
    identity = make_identities(settings)[host.name]
    if public_key:
        _print_public_key(host, identity)
        return
    found = asyncio.run(_diagnose(settings, host, None if repo is None else _parse_repo(host, repo)))
    findings = (*found, _describe_signing(host, identity))
    if as_json:
        typer.echo(encode_json({"host": host.name, "findings": findings}))
    else:
        for finding in findings:
            mark, color = ("✓", None) if finding.ok else ("✗", typer.colors.RED)
            mark, color = ("!", typer.colors.YELLOW) if finding.advice else (mark, color)
            typer.secho(f"{mark} {sanitize(finding.message)}", fg=color)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _print_public_key(host: Host, identity: Identity) -> None:
    if identity.signer is None:
        exit_with_message(
            f"Commits on {host.name} are not signed.",
            hint=f'Set signing_key_file in the table [hosts."{host.name}"].',
        )
    typer.echo(identity.signer.public_key.rstrip("\n"))


def _describe_signing(host: Host, identity: Identity) -> Finding:
    """For an SSH key with the line that git needs to verify commits. Git only shows its first word."""
    signer = identity.signer
    if signer is None:
        return Finding(True, "Commits are not signed: the settings contain no signing_key_file for this host.")
    message = (
        f"Commits are signed with the key {signer.fingerprint}. `mergeyard host check {host.name} --public-key` prints "
        "its public key."
    )
    if signer.public_key.startswith(OPENPGP_MARKER):
        return Finding(True, message)
    line = f'{identity.email or "mergeyard"} namespaces="git" {signer.public_key}'
    return Finding(True, f"{message} Git verifies them with this line in an allowed-signers file: {line}")


async def _diagnose(settings: "Settings", host: Host, repo: Repo | None) -> Sequence[Finding]:
    from mergeyard.service.repositories import diagnose_host

    try:
        queues = () if repo is None or host.forge is None else await _read_queues(settings, repo)
        return await diagnose_host(host, repo, queues)
    finally:
        await host.close()


async def _read_queues(settings: "Settings", repo: Repo) -> Sequence[QueueSetup]:
    """The queues of the repository in the database of the settings; none, with a message, if it cannot be read.

    Never creates or migrates a database: the server can be running, and this command only reads.
    """
    from mergeyard.adapters.clock import WallClock
    from mergeyard.service import persistence
    from mergeyard.service.repositories import read_queue_setup
    from mergeyard.wiring import open_archive, open_store

    archive, store, found = open_archive(settings), open_store(settings), list[QueueSetup]()
    try:
        version = await archive.schema_version()
        if version != SCHEMA_VERSION:
            problem = f"has version {version} of the database, not {SCHEMA_VERSION}" if version else "has no database"
            raise StoreUnavailable(f"{archive.location} {problem}.")
        await store.open()
        for queue in [queue for queue in await store.queues() if queue.key.repo == repo]:
            with suppress(LookupError):  # deleted meanwhile
                loaded = persistence.decode_queue(await store.load(queue.id))
                found.append(await read_queue_setup(store, loaded, WallClock().now()))
    except StoreUnavailable as error:
        print_message(f"The queues could not be read, so the default branch is checked: {error}")
        return ()
    finally:
        await store.close()
    return found


def _parse_repo(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        exit_with_message(f"{text} is not a repository name: write --repo owner/name.")
    return host.canonical_repo(Repo(host.name, owner, name))
