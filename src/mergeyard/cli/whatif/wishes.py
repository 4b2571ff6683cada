"""Reads a wish, such as `batchingMinSize=8`: which setting is meant, and what it should have been."""

from typing import Any, cast

import typer
from msgspec import inspect

from mergeyard.cli.queue.settings import read_switch, reading_numbers
from mergeyard.domain.config import Config
from mergeyard.sim.replaying.replayable import REPLAYABLE

KINDS = {field.name: field.type for field in cast(inspect.StructType, inspect.type_info(Config)).fields}


def read_wish(text: str) -> tuple[str, Any]:
    """A setting is named as the API names it, as a file would, or as an option."""
    named, _, value = text.partition("=")
    spelled = {_squeezed(name): name for name in REPLAYABLE}
    if _squeezed(named) not in spelled:
        listed = ", ".join(REPLAYABLE)
        raise typer.BadParameter(f"{named} is no setting that can be replayed. These are: {listed}.")
    name = spelled[_squeezed(named)]
    return name, _read(name, value)


def _squeezed(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _read(name: str, text: str) -> Any:
    match KINDS[name]:
        case inspect.BoolType():
            return read_switch(text)
        case inspect.IntType(ge=least, le=most):
            return reading_numbers(least or 0, most or 0)(text)
        case inspect.EnumType(cls=words):
            return _word(text, [str(word.value) for word in words])
        case kind:
            raise TypeError(f"nobody can read {name}, which is {kind}")


def _word(text: str, words: list[str]) -> str:
    if text.lower() not in words:
        raise typer.BadParameter(f"{text} is none of {', '.join(words)}.")
    return text.lower()
