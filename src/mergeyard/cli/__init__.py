"""The command line: the table of all commands, each with the module it is imported from when it is called."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer._click.exceptions import UsageError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from mergeyard import __version__
from mergeyard.cli.output import ExitCode


class Later(TyperCommand):
    """Placeholder for a command, or for a group of commands, in the list of all."""

    def __init__(self, name: str, place: str, sentence: str, panel: str) -> None:
        """A place is a module, and in it a function or an app: `mergeyard.cli.server:serve`."""
        super().__init__(name, help=sentence, rich_help_panel=panel)
        self.place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Delegates to the loaded command."""
        return self.loaded().make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:
        module, _, thing = self.place.partition(":")
        found = getattr(import_module(module), thing)
        return get_group(found) if isinstance(found, typer.Typer) else get_command(_alone(found))


class Commands(TyperGroup):
    places: tuple[tuple[str, str, str, str], ...] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for place in self.places:
            self.add_command(Later(*place))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with wrong_use_marked():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with wrong_use_marked():
            return super().invoke(ctx)


@contextmanager
def wrong_use_marked() -> Generator[None]:
    """Click ends with 2 on wrong use, which is our code for a cancelled pull request."""
    try:
        yield
    except UsageError as error:
        error.exit_code = ExitCode.USAGE_ERROR
        raise


def _alone(command: Any) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return app


PULL_REQUESTS_PANEL = "Pull requests"
QUEUES_PANEL = "Queues"
OPERATIONS_PANEL = "Running the service"


class MergeyardCommands(Commands):
    places = (
        ("submit", "mergeyard.cli.pull_requests:submit", "Add a pull request to the queue.", PULL_REQUESTS_PANEL),
        ("cancel", "mergeyard.cli.pull_requests:cancel", "Remove a pull request from the queue.", PULL_REQUESTS_PANEL),
        (
            "restart",
            "mergeyard.cli.pull_requests:restart",
            "Run the tests of a pull request again.",
            PULL_REQUESTS_PANEL,
        ),
        ("status", "mergeyard.cli.pull_requests:status", "Show the state of a pull request.", PULL_REQUESTS_PANEL),
        (
            "watch",
            "mergeyard.cli.pull_requests:watch",
            "Follow a pull request until it is merged, failed or cancelled.",
            PULL_REQUESTS_PANEL,
        ),
        ("targets", "mergeyard.cli.targets:app", "Impacted targets, for parallel queues.", PULL_REQUESTS_PANEL),
        ("pr", "mergeyard.cli.pr:app", "Pull requests of plain Git repositories.", PULL_REQUESTS_PANEL),
        ("queue", "mergeyard.cli.queues:app", "Create, configure and inspect queues.", QUEUES_PANEL),
        ("runs", "mergeyard.cli.history:app", "Test runs and their results.", QUEUES_PANEL),
        ("events", "mergeyard.cli.history:events", "Show the events of a queue, and follow them.", QUEUES_PANEL),
        ("audit", "mergeyard.cli.history:audit", "Compare merged commits with the tested ones.", QUEUES_PANEL),
        ("whatif", "mergeyard.cli.whatif:whatif", "Replay a queue's history with other settings.", QUEUES_PANEL),
        ("top", "mergeyard.cli.top:top", "Show a queue live, full screen.", QUEUES_PANEL),
        ("serve", "mergeyard.cli.server:serve", "Start the server.", OPERATIONS_PANEL),
        (
            "demo",
            "mergeyard.cli.demo:run_demo",
            "Run a demo: a real server with a sample repository.",
            OPERATIONS_PANEL,
        ),
        ("token", "mergeyard.cli.token:app", "API tokens.", OPERATIONS_PANEL),
        (
            "webhook",
            "mergeyard.cli.webhook:app",
            "Webhooks that send events to other programs and to Slack.",
            OPERATIONS_PANEL,
        ),
        ("host", "mergeyard.cli.host:app", "Git hosts.", OPERATIONS_PANEL),
        ("db", "mergeyard.cli.db:app", "Check, move and back up the database.", OPERATIONS_PANEL),
    )


app = typer.Typer(name="mergeyard", cls=MergeyardCommands, no_args_is_help=True, pretty_exceptions_show_locals=False)


def show_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=show_version, help="Show the version and exit.")]


@app.callback()
def mergeyard(version: VersionOption = False) -> None:
    """A self-hosted merge queue."""
