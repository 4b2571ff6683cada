"""The demo shows a queue at work in the terminal: a real server, a real repository, real checks."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack, suppress
from typing import Annotated

import typer
from rich.console import Console

from mergeyard.cli.demo.asking import Asking, Refused, asking
from mergeyard.cli.demo.plot import Plot
from mergeyard.cli.demo.scene import Scene, Watching
from mergeyard.cli.demo.stage import Stage, StageTrouble, setting, temporary_folder
from mergeyard.cli.demo.telling import introduce, show_ends, show_finding, show_the_way
from mergeyard.cli.demo.verdict import findings
from mergeyard.cli.demo.watching import screen_on
from mergeyard.cli.options import stop_with

BETWEEN_LOOKS = 0.2
PATIENCE = 120
"""Seconds until everybody must be decided; a third of it is enough on a slow machine."""
INTERRUPTED = 130
WIDTH_OF_LOGS = 150


def play(
    leave: Annotated[bool, typer.Option("--exit", help="Leave when all is decided; 1 when it came out wrong.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder with everything in it.")] = False,
) -> None:
    """Watch a queue at work: a real server with a sample repository."""
    try:
        well = asyncio.run(perform(leave=leave, keep=keep))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED) from None
    except (StageTrouble, Refused) as trouble:
        stop_with(str(trouble))
    raise typer.Exit(0 if well else 1)


async def perform(*, leave: bool, keep: bool) -> bool:
    end_like_interrupted(signal.SIGTERM)
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_LOGS)
    async with AsyncExitStack() as open_things:
        folder = await open_things.enter_async_context(temporary_folder(keep=keep))
        introduce(console, folder)
        stage = await open_things.enter_async_context(setting(folder))
        operator = await open_things.enter_async_context(asking(stage.url, stage.admin))
        author = await open_things.enter_async_context(asking(stage.url, stage.token_file.read_text()))
        scene = await played_to_the_end(console, stage, operator, author)
        well = await judged(console, stage, scene, author)
        if not leave:
            show_the_way(console, stage)
            await until_interrupted(stage)
            console.print()
    return well


async def played_to_the_end(console: Console, stage: Stage, operator: Asking, author: Asking) -> Scene:
    scene, watching = Scene({}), Watching(author)
    with screen_on(console) as screen, suppress(TimeoutError):
        plot = Plot(operator, author, stage.repository, screen)
        async with asyncio.timeout(PATIENCE):
            await plot.begin()
            while not scene.over:
                scene = await watching.look()
                screen.show(scene)
                await plot.go_on(scene)
                await asyncio.sleep(BETWEEN_LOOKS)
    return scene


async def judged(console: Console, stage: Stage, scene: Scene, author: Asking) -> bool:
    show_ends(console, scene)
    well = True
    async for finding in findings(scene, author, stage.repository, stage.folder):
        show_finding(console, finding)
        well = well and not finding.differences
    return well


async def until_interrupted(stage: Stage) -> None:
    with suppress(asyncio.CancelledError):
        await stage.server.wait()
        raise StageTrouble("The server ended by itself.")


def end_like_interrupted(number: signal.Signals) -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
