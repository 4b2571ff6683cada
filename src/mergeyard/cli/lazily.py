"""Loads a command only when it is called, so that help, and whatever asks the server, is there at once."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer._click.exceptions import UsageError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from mergeyard.cli.exits import Ends


class Later(TyperCommand):
    """Stands for a command, or for a group of them, in the list of all."""

    def __init__(self, name: str, place: str, sentence: str, panel: str) -> None:
        """A place is a module, and in it a function or an app: `mergeyard.cli.server:serve`."""
        super().__init__(name, help=sentence, rich_help_panel=panel)
        self.place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """From here on it is the command itself that is spoken to."""
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
    """Otherwise it would end with 2, and look like a pull request that was cancelled."""
    try:
        yield
    except UsageError as error:
        error.exit_code = Ends.WRONG_USE
        raise


def _alone(command: Any) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return app
