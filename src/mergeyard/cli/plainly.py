"""Shows what others wrote: it may neither paint nor steer the terminal."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer
from rich.text import Text

UNSHOWABLE = "�"


def clean(text: str) -> str:
    """Control characters, and those that turn the direction of writing around, are shown as what they are not."""
    return "".join(character if character.isprintable() else UNSHOWABLE for character in text)


def plain(text: object, style: str = "") -> Text:
    """Brackets in it are brackets, and no markup."""
    return Text(clean(str(text)), style)


def say(words: str) -> None:
    """Beside what was asked for. Its lines are ours, what stands in them may not be."""
    typer.echo("\n".join(map(clean, words.split("\n"))), err=True)


def in_json(answer: Any) -> str:
    """With the members and the spelling of the API, in characters that no terminal obeys."""
    members = msgspec.to_builtins(answer, builtin_types=(datetime,))
    return json.dumps(members, default=_time)


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
