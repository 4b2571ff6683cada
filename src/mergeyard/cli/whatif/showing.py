"""Shows a replay: as it was, as the replay has it, with the change, and how sure that is."""

from collections.abc import Callable

from rich.table import Table
from rich.text import Text

from mergeyard.cli.plainly import plain
from mergeyard.cli.showing import span, when
from mergeyard.cli.terminal import put
from mergeyard.client import QueueReplay, ReplayFigures

SURE = {"well": "green", "roughly": "yellow", "hardly": "red"}
UNKNOWN = "–"

Figure = Callable[[ReplayFigures], float | None]
Writing = Callable[[float], str]


def count(number: float) -> str:
    return f"{round(number):,}"


def minutes(number: float) -> str:
    return f"{number:.1f}" if number < 10 else count(number)


def ratio(number: float) -> str:
    return f"{number:,.2f}"


def money(number: float) -> str:
    return ratio(number) if number < 1000 else count(number)


ROWS: dict[str, tuple[Figure, Writing]] = {
    "merged": (lambda them: them.merged, count),
    "failed": (lambda them: them.failed, count),
    "half merged within": (lambda them: them.p50_seconds, span),
    "95 % merged within": (lambda them: them.p95_seconds, span),
    "runs": (lambda them: them.runs, count),
    "runs per merge": (lambda them: them.runs_per_merge, ratio),
    "CI minutes": (lambda them: them.ci_minutes, minutes),
}
ENDS = ("merged", "failed")
"""Of all others less is better."""


def rows(price: float | None) -> dict[str, tuple[Figure, Writing]]:
    """With the price of a minute also what all of them cost."""
    if price is None:
        return ROWS

    def cost(them: ReplayFigures) -> float:
        return them.ci_minutes * price

    return {**ROWS, "cost": (cost, money)}


def show(replay: QueueReplay, price: float | None = None) -> None:
    changes = [plain(f"{each.setting} {written(each.now)} → {written(each.wished)}", "bold") for each in replay.changes]
    put(plain(heading(replay)), *changes, table(replay, price), *verdict(replay))


def heading(replay: QueueReplay) -> str:
    told = "1 pull request" if replay.pull_requests == 1 else f"{replay.pull_requests:,} pull requests"
    latest = "" if replay.most is None else f", the latest {replay.most:,} of them"
    return f"{told} since {when(replay.since)}{latest}"


def written(value: bool | int | str) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def table(replay: QueueReplay, price: float | None) -> Table:
    drawn = Table("", box=None, header_style="dim", pad_edge=False)
    changed = ("with the change", "difference") if replay.changes else ()
    for name in ("as it was", "replayed as it was", *changed):
        drawn.add_column(name, justify="right")
    for name, (figure, write) in rows(price).items():
        cells = [cell(figures, figure, write) for figures in (replay.as_it_was, replay.replayed_as_it_was)]
        difference = told_apart(replay, figure, less_is_better=name not in ENDS)
        drawn.add_row(name, *cells, *((drawn_cell(replay, figure, write), difference) if changed else ()))
    return drawn


def cell(figures: ReplayFigures | None, figure: Figure, write: Writing) -> str:
    value = None if figures is None else figure(figures)
    return UNKNOWN if value is None else write(value)


def drawn_cell(replay: QueueReplay, figure: Figure, write: Writing) -> str:
    """The middle, and in brackets from the least to the most if they differ."""
    draws = (replay.with_the_change, replay.with_the_change_at_least, replay.with_the_change_at_most)
    middle, least, most = (cell(figures, figure, write) for figures in draws)
    return middle if least == most else f"{middle} ({least}–{most})"


def told_apart(replay: QueueReplay, figure: Figure, *, less_is_better: bool) -> Text:
    """Compared with the replay of what was: so its own error is on both sides."""
    was, now = replay.replayed_as_it_was, replay.with_the_change
    before, after = None if was is None else figure(was), None if now is None else figure(now)
    if not before or after is None:
        return Text(UNKNOWN)
    percent = round((after - before) / before * 100)
    if not percent:
        return Text("none", "dim")
    good = (percent < 0) == less_is_better
    return Text(moved(percent), "green" if good else "red")


def moved(percent: int) -> str:
    return "▲ many times" if percent >= 1000 else f"{'▲' if percent > 0 else '▼'} {abs(percent)} %"


def verdict(replay: QueueReplay) -> list[Text]:
    reasons = [plain(f"  {reason}") for reason in replay.reasons]
    guesses = [plain(f"  {guess.message}", "dim") for guess in replay.guesses]
    guessed = [plain("What is guessed:", "dim"), *guesses] if guesses else []
    sure = f"What this would do is {replay.sureness} known." if replay.changes else f"It is {replay.sureness} replayed."
    return [plain(sure, SURE.get(replay.sureness, "")), *reasons, *guessed]
