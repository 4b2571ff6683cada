"""Reads back what the settings of a queue were, from what the journal tells of their changes."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from mergeyard.domain.config import Config
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.reasons import Reason
from mergeyard.sim.replaying.history import Setting
from mergeyard.sim.replaying.replayable import REPLAYABLE

CHANGE = re.compile(rf"({'|'.join(REPLAYABLE)}) (\S+) → (\S+?)(?:, |$)")
SWITCHES = {"yes": True, "no": False}


class PastSettings(Struct, frozen=True):
    settings: tuple[Setting, ...]
    """Oldest first; the first held from the beginning."""
    unread: int
    """How many changes could not be taken back."""


def read_back(now: Config, changes: Iterable[QueueChanged], since: Instant) -> PastSettings:
    """`changes` are those since then, the latest first. Of settings that cannot be replayed only the last is known."""
    config, settings, unread = now, list[Setting](), 0
    for change in changes:
        if change.reason is not Reason.SETTINGS_CHANGED:
            continue
        settings.append(Setting(change.at, config))
        before = _before(config, change.words)
        unread += before is None
        config = before or config
    return PastSettings((Setting(since, config), *reversed(settings)), unread)


def _before(after: Config, words: str) -> Config | None:
    """None when the words do not lead to what came after them."""
    changes = list(_told(words))
    if any(_written(getattr(after, name)) != new for name, _, new in changes):
        return None
    try:
        return convert(to_builtins(after) | {name: _value(old) for name, old, _ in changes}, Config, strict=False)
    except ValidationError:
        return None


def _told(words: str) -> Iterator[tuple[str, str, str]]:
    """Those that can be replayed come first in the domain, and so here: behind them may stand what others wrote."""
    place = 0
    while change := CHANGE.match(words, place):
        yield change[1], change[2], change[3]
        place = change.end()


def _written(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _value(word: str) -> Any:
    return SWITCHES.get(word, word)
