"""The options of every command that asks a server: whom to ask, about which queue, and in which form to answer."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from mergeyard.cli.completing import branches, repositories

PANEL = "Whom to ask"
URL, TOKEN = "MERGEYARD_URL", "MERGEYARD_TOKEN"

Url = Annotated[str | None, typer.Option("--url", envvar=URL, help="Where the service is.", rich_help_panel=PANEL)]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help=f"Holds the token, else {TOKEN} is taken.", rich_help_panel=PANEL),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo",
        envvar="MERGEYARD_REPO",
        metavar="HOST/OWNER/NAME",
        help="The repository; not needed where the token sees only one queue.",
        rich_help_panel=PANEL,
        autocompletion=repositories,
    ),
]
Branch = Annotated[
    str | None,
    typer.Option(
        "--branch",
        "--target-branch",
        envvar="MERGEYARD_BRANCH",
        metavar="BRANCH",
        help="The branch of the queue; not needed where there is only one.",
        rich_help_panel=PANEL,
        autocompletion=branches,
    ),
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="HOST/OWNER/NAME:BRANCH",
        help="Both in one word, as the addresses of the pages have it.",
        rich_help_panel=PANEL,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: what the API answered.")]


class Whom(Struct, frozen=True, kw_only=True):
    """What the options say about whom to ask."""

    url: Url = None
    token_file: TokenFile = None
    repo: Repo = None
    branch: Branch = None
    queue: Queue = None
    as_json: AsJson = False
