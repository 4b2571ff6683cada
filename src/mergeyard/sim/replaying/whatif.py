"""Answers a question: what was, what the replay makes of it, what it makes of other settings, and how sure it is."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.sim.racing.race import Diverged
from mergeyard.sim.replaying import figures, guesses
from mergeyard.sim.replaying.figures import Figures, Spread
from mergeyard.sim.replaying.guesses import Guess
from mergeyard.sim.replaying.history import History, Setting
from mergeyard.sim.replaying.replay import Replay, Replayed
from mergeyard.sim.replaying.replayable import replayed
from mergeyard.sim.replaying.sureness import Findings, Sureness, doubts, verdict
from mergeyard.sim.replaying.truth import Truth, find_out

DRAWS = 5
"""What history does not tell is drawn so often, to see how much hangs on it."""


class Question(Struct, frozen=True):
    history: History
    wishes: dict[str, Any]
    """Settings by their names, each with the value that it would have had all the time."""


class Answer(Struct, frozen=True, kw_only=True):
    really: Figures
    replayed: Figures | None
    """As it was; None: it came to no end. So is the next, with the wishes."""
    changed: Spread | None
    sureness: Sureness
    reasons: tuple[str, ...]
    guesses: tuple[Guess, ...]


def answer(question: Question) -> Answer:
    history, truth = question.history, find_out(question.history)
    settings = under(history, question.wishes)
    as_it_was = _replay(history, truth, under(history, {}))
    draws = _draw(history, truth, settings) if question.wishes else [as_it_was]
    ended = [draw for draw in draws if draw is not None]
    found = Findings(
        history=history,
        truth=truth,
        unknown=guesses.unknown(history, truth, settings),
        really=figures.really(history),
        replayed=None if as_it_was is None else figures.replayed(history, as_it_was),
        changed=figures.spread([figures.replayed(history, draw) for draw in ended]) if ended == draws else None,
        new_runs=_share_of_new(draws[0]),
        wishes=question.wishes,
    )
    listed = doubts(found)
    return Answer(
        really=found.really,
        replayed=found.replayed,
        changed=found.changed,
        sureness=verdict(listed),
        reasons=tuple(doubt.words for doubt in listed),
        guesses=guesses.list_guesses(history, truth, found.unknown, draws[0]),
    )


def under(history: History, wishes: dict[str, Any]) -> tuple[Setting, ...]:
    """What is not wished for is what it was, and changes when it did."""
    return tuple(Setting(setting.at, replayed(setting.config, wishes)) for setting in history.settings)


def _draw(history: History, truth: Truth, settings: Sequence[Setting]) -> list[Replayed | None]:
    return [_replay(history, replace(truth, draw=draw), settings) for draw in range(DRAWS)]


def _replay(history: History, truth: Truth, settings: Sequence[Setting]) -> Replayed | None:
    try:
        return Replay(history, truth, settings).run()
    except Diverged:
        return None


def _share_of_new(changed: Replayed | None) -> float:
    if changed is None or not changed.runs:
        return 0.0
    return sum(not run.seen for run in changed.runs) / len(changed.runs)
