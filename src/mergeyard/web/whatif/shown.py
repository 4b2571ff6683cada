"""A replay as the page shows it: what stands out in a sentence, every figure in a row, and how sure that is."""

from collections.abc import Callable

from msgspec import Struct

from mergeyard.service.replaying.replays import Replay
from mergeyard.sim.replaying.figures import Figures
from mergeyard.sim.replaying.sureness import Sureness
from mergeyard.web.health import numbers
from mergeyard.web.health.numbers import Writing
from mergeyard.web.words import count

TONES = {Sureness.WELL: "succeeded", Sureness.ROUGHLY: "pending_failure", Sureness.HARDLY: "failed"}
"""By the colours of states."""

What = Callable[[Figures], float | None]
FIGURES: dict[str, tuple[What, Writing, str]] = {
    "Merged": (lambda them: them.merged, numbers.count, "more"),
    "Failed": (lambda them: them.failed, numbers.count, ""),
    "Half merged within": (lambda them: them.median, numbers.time, "less"),
    "95 % merged within": (lambda them: them.slow, numbers.time, "less"),
    "Runs": (lambda them: them.runs, numbers.count, "less"),
    "Runs per merged": (lambda them: them.runs_per_merge, numbers.ratio, "less"),
    "CI minutes spent": (lambda them: them.spent, numbers.minutes, "less"),
}
"""By its name: what it is, how it is written, and of what one wishes more or less."""


class Row(Struct, frozen=True, kw_only=True):
    name: str
    really: str
    replayed: str
    changed: str
    drawn: str
    """From the least to the most of all draws, if they differ."""
    difference: str
    verdict: str
    """Better or worse, where one of them is wished for."""


class Shown(Struct, frozen=True, kw_only=True):
    finding: str
    told: str
    """Over whom."""
    rows: tuple[Row, ...]
    sure: str
    tone: str
    own_error: str
    reasons: tuple[str, ...]
    guesses: tuple[str, ...]


def shown(replay: Replay) -> Shown:
    answer = replay.answer
    latest = "" if replay.most is None else f", the latest {replay.most:,} of them"
    return Shown(
        finding=_finding(replay),
        told=f"{count(replay.counted, 'pull request')}{latest}",
        rows=tuple(_row(replay, name) for name in FIGURES),
        sure=f"What this would do is {answer.sureness} known" if replay.wishes else f"It is {answer.sureness} replayed",
        tone=TONES[answer.sureness],
        own_error=_own_error(replay),
        reasons=answer.reasons,
        guesses=tuple(guess.words for guess in answer.guesses),
    )


def _finding(replay: Replay) -> str:
    was, now = replay.answer.replayed, None if replay.answer.changed is None else replay.answer.changed.middle
    if was is None or now is None or was.median is None or now.median is None:
        return "Nobody can tell how long it would take"
    if not replay.wishes:
        return f"As it was, half merge within {numbers.time(was.median)}"
    waits = f"Half merge within {numbers.time(now.median)} instead of {numbers.time(was.median)}"
    percent = round((now.spent - was.spent) / was.spent * 100) if was.spent else 0
    costs = f"{abs(percent)} % {'more' if percent > 0 else 'fewer'} CI minutes" if percent else "as many CI minutes"
    return f"{waits}, for {costs}"


def _own_error(replay: Replay) -> str:
    if replay.answer.replayed is None:
        return "Replayed as it was, it came to no end."
    replayed, really = numbers.time(replay.answer.replayed.median), numbers.time(replay.answer.really.median)
    return f"Replayed as it was, half merged within {replayed}; it really was {really}."


def _row(replay: Replay, name: str) -> Row:
    what, written, wish = FIGURES[name]
    drawn = replay.answer.changed

    def cell(figures: Figures | None) -> str:
        return numbers.UNKNOWN if figures is None else written(what(figures))

    least, most = (cell(drawn.least), cell(drawn.most)) if drawn is not None else ("", "")
    difference, verdict = _difference(replay, what, wish)
    return Row(
        name=name,
        really=cell(replay.answer.really),
        replayed=cell(replay.answer.replayed),
        changed=cell(None if drawn is None else drawn.middle),
        drawn="" if least == most else f"{least} to {most}",
        difference=difference,
        verdict=verdict,
    )


def _difference(replay: Replay, what: What, wish: str) -> tuple[str, str]:
    """Compared with the replay of what was: so its own error is on both sides."""
    was, drawn = replay.answer.replayed, replay.answer.changed
    before, after = None if was is None else what(was), None if drawn is None else what(drawn.middle)
    if not before or after is None:
        return numbers.UNKNOWN, ""
    percent = round((after - before) / before * 100)
    if not percent:
        return "none", ""
    verdict = "better" if (percent > 0) == (wish == "more") else "worse"
    return _moved(percent), verdict if wish else ""


def _moved(percent: int) -> str:
    return "▲ many times" if percent >= 1000 else f"{'▲' if percent > 0 else '▼'} {abs(percent)} %"
