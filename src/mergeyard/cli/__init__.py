"""The command line: all commands in one list, and where each is loaded from when it is called."""

from typing import Annotated

import typer

from mergeyard import __version__
from mergeyard.cli.lazily import Commands

PULLS = "Pull requests"
QUEUES = "Queues"
OPERATING = "Running the service"


class Mergeyard(Commands):
    places = (
        ("submit", "mergeyard.cli.pulls:submit", "Put a pull request into the queue.", PULLS),
        ("cancel", "mergeyard.cli.pulls:cancel", "Take a pull request out of the queue.", PULLS),
        ("restart", "mergeyard.cli.pulls:restart", "Run the tests of a pull request again.", PULLS),
        ("status", "mergeyard.cli.pulls:status", "Show how a pull request stands.", PULLS),
        ("watch", "mergeyard.cli.pulls:watch", "Follow a pull request until its end.", PULLS),
        ("targets", "mergeyard.cli.targets:app", "Impacted targets, for parallel queues.", PULLS),
        ("pr", "mergeyard.cli.pr:app", "Pull requests of plain Git repositories.", PULLS),
        ("queue", "mergeyard.cli.queue:app", "Queues: make them, steer them, look into them.", QUEUES),
        ("runs", "mergeyard.cli.runs:app", "Test runs and their results.", QUEUES),
        ("events", "mergeyard.cli.events:events", "Show what happened in a queue, and follow it.", QUEUES),
        ("audit", "mergeyard.cli.audit:audit", "Compare what landed with what was tested.", QUEUES),
        ("whatif", "mergeyard.cli.whatif:whatif", "Replay a queue's past under other settings.", QUEUES),
        ("top", "mergeyard.cli.top:top", "Watch a queue at work, on the whole screen.", QUEUES),
        ("serve", "mergeyard.cli.server:serve", "Start the server.", OPERATING),
        (
            "demo",
            "mergeyard.cli.demo:play",
            "Watch a queue at work: a real server with a sample repository.",
            OPERATING,
        ),
        ("simulate", "mergeyard.cli.simulate:simulate", "Race policies of merging against each other.", OPERATING),
        ("token", "mergeyard.cli.token:app", "API tokens.", OPERATING),
        ("webhook", "mergeyard.cli.webhook:app", "Events sent to other programs, and to Slack.", OPERATING),
        ("host", "mergeyard.cli.host:app", "Hosts of repositories.", OPERATING),
        ("db", "mergeyard.cli.db:app", "The database: check it, move it, back it up.", OPERATING),
    )


app = typer.Typer(name="mergeyard", cls=Mergeyard, no_args_is_help=True, pretty_exceptions_show_locals=False)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=show_version, help="Show the version and leave.")]


@app.callback()
def mergeyard(version: Version = False) -> None:
    """A self-hosted merge queue."""
