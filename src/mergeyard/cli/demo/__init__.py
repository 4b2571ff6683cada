"""`mergeyard demo`: runs a queue live in the terminal, with a real server, a real repository and real checks."""

import asyncio
from typing import Annotated

import typer

from mergeyard.cli.output import exit_with_message
from mergeyard.client import MergeyardError, Unreachable

INTERRUPTED_EXIT_CODE = 130


def demo(
    exit_when_done: Annotated[
        bool,
        typer.Option("--exit", help="End after the last pull request, with exit code 1 if a result is wrong."),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder of the demo.")] = False,
) -> None:
    """Run a demo: a real server, a dashboard and a sample repository with twelve pull requests, until Ctrl-C.

    Examples:
        mergeyard demo
        mergeyard demo --exit
    """
    from mergeyard.cli.demo.environment import DemoServerError
    from mergeyard.cli.demo.scenario import run

    try:
        succeeded = asyncio.run(run(exit_when_done=exit_when_done, keep=keep))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    except (DemoServerError, MergeyardError, Unreachable) as error:
        exit_with_message(str(error))
    raise typer.Exit(0 if succeeded else 1)
