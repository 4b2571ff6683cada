"""Shows what goes on: as a picture that moves on a terminal, and as a line for every change elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.live import Live

from mergeyard.cli.demo.asking import Stay
from mergeyard.cli.demo.drawing import awaited, picture, view
from mergeyard.cli.demo.scene import Scene


class Screen(Protocol):
    def show(self, scene: Scene) -> None: ...
    def tell(self, words: str) -> None:
        """Something that a person of the demo did."""
        ...


class Moving:
    """Draws over what it drew before."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._begun = monotonic()

    def show(self, scene: Scene) -> None:
        self._live.update(view(scene, monotonic() - self._begun), refresh=True)

    def tell(self, words: str) -> None:
        self._live.console.print(f"[dim]{monotonic() - self._begun:5.1f} s[/]  {words}", highlight=False)


class Lines:
    """Writes only what is new, and no control codes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = monotonic()
        self._shown = Scene({})

    def show(self, scene: Scene) -> None:
        for number, stay in scene.stays.items():
            if told(stay) != told(self._shown.stays.get(number)):
                self.tell(sentence(stay))
        if picture(scene).plain != picture(self._shown).plain:
            self.tell(picture(scene).plain)
        self._shown = scene

    def tell(self, words: str) -> None:
        line = f"{monotonic() - self._begun:5.1f} s  {words}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def sentence(stay: Stay) -> str:
    others = awaited(stay)
    return f"#{stay.pr_number} {stay.state}: {stay.reason.message}" + (f" Waits for {others}." if others else "")


def told(stay: Stay | None) -> tuple[object, ...]:
    return () if stay is None else (stay.id, stay.state, stay.reason)


@contextmanager
def screen_on(console: Console) -> Generator[Screen]:
    if not console.is_terminal:
        yield Lines(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield Moving(live)
