"""Writes to a terminal or into a pipe, and lets something move on the terminal while somebody waits."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from mergeyard.cli.plainly import plain


def on_a_terminal() -> bool:
    return sys.stdout.isatty()


@cache
def screen() -> Console:
    """One for all, so that what is printed and what moves below it do not write into each other."""
    return Console(highlight=False)


def put(*drawn: RenderableType, width_in_a_pipe: int = 10_000) -> None:
    """In a pipe nothing is cut, folded or padded."""
    if on_a_terminal():
        screen().print(*drawn, sep="\n")
        return
    out = Console(width=width_in_a_pipe, highlight=False)
    with out.capture() as captured:
        out.print(*drawn, sep="\n")
    typer.echo("\n".join(map(str.rstrip, captured.get().splitlines())))


@contextmanager
def busy(words: str) -> Generator[Callable[[str], None]]:
    """Something moves on the terminal while somebody waits, and says what for. What goes into a pipe is left alone."""
    spinner, on_screen = Spinner("dots", plain(words)), on_a_terminal()
    out = screen() if on_screen else Console(stderr=True)
    with Live(spinner, console=out, transient=True, redirect_stdout=on_screen, redirect_stderr=on_screen):
        yield lambda said: spinner.update(text=plain(said))
