"""The command line gathers its groups of commands here, one file per group."""

from typing import Annotated

import typer

from mergeyard import __version__
from mergeyard.cli import db, demo, host, pr, server, targets, token, webhook

app = typer.Typer(name="mergeyard", no_args_is_help=True, add_completion=False)
app.command("serve")(server.serve)
app.command("demo")(demo.play)
app.add_typer(token.app)
app.add_typer(webhook.app)
app.add_typer(host.app)
app.add_typer(pr.app)
app.add_typer(targets.app)
app.add_typer(db.app)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=show_version, help="Show the version and leave.")]


@app.callback()
def mergeyard(version: Version = False) -> None:
    """A self-hosted merge queue."""
