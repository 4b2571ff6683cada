"""`mergeyard whatif`: has the server replay a queue's history with other settings."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import typer
from msgspec import inspect
from rich.table import Table
from rich.text import Text

from mergeyard.cli.connection_options import SinceOption
from mergeyard.cli.output import build_table, format_duration, format_time, plain_text, print_output, show_spinner
from mergeyard.cli.queues import build_number_parser, format_setting, parse_switch
from mergeyard.cli.session import Session, with_session
from mergeyard.client import QueueReplay, ReplayMetrics
from mergeyard.domain.config import Config
from mergeyard.simulation.history import REPLAYABLE_SETTINGS

CONFIDENCE_STYLES = {"high": "green", "medium": "yellow", "low": "red"}
UNRELIABLE = "low"
"""With this confidence no difference is called better or worse, as on the page."""
UNKNOWN_CELL = "–"

Metric = Callable[[ReplayMetrics], float | None]
Formatter = Callable[[float], str]


def format_count(number: float) -> str:
    return f"{round(number):,}"


def format_minutes(number: float) -> str:
    return f"{number:.1f}" if number < 10 else format_count(number)


def format_ratio(number: float) -> str:
    return f"{number:,.2f}"


def format_money(number: float) -> str:
    return format_ratio(number) if number < 1000 else format_count(number)


METRIC_ROWS: dict[str, tuple[Metric, Formatter]] = {
    "merged": (lambda metrics: metrics.merged, format_count),
    "failed": (lambda metrics: metrics.failed, format_count),
    "median time to merge": (lambda metrics: metrics.p50_seconds, format_duration),
    "95 % merged within": (lambda metrics: metrics.p95_seconds, format_duration),
    "runs": (lambda metrics: metrics.runs, format_count),
    "runs per merge": (lambda metrics: metrics.runs_per_merge, format_ratio),
    "CI minutes": (lambda metrics: metrics.ci_minutes, format_minutes),
}
OUTCOME_ROWS = ("merged", "failed")
"""For all other rows less is better."""


def build_rows(price: float | None) -> dict[str, tuple[Metric, Formatter]]:
    """With a price per CI minute, also the cost."""
    rows = dict(METRIC_ROWS)
    if price is not None:
        rows["cost"] = (lambda metrics: metrics.ci_minutes * price, format_money)
    return rows


def show_replay(replay: QueueReplay, price: float | None = None) -> None:
    changes = [
        plain_text(f"{change.setting} {format_setting(change.now)} → {format_setting(change.proposed)}", "bold")
        for change in replay.changes
    ]
    print_output(
        plain_text(format_heading(replay)), *changes, build_comparison(replay, price), *format_confidence(replay)
    )


def format_heading(replay: QueueReplay) -> str:
    pull_requests = "1 pull request" if replay.pull_requests == 1 else f"{replay.pull_requests:,} pull requests"
    latest = "" if replay.limited_to is None else f", the latest {replay.limited_to:,} of them"
    return f"{pull_requests} since {format_time(replay.since)}{latest}"


def build_comparison(replay: QueueReplay, price: float | None) -> Table:
    change_columns = ("with the change", "difference") if replay.changes else ()
    rendered = build_table("", "actual", "replayed unchanged", *change_columns)
    for column in rendered.columns[1:]:
        column.justify = "right"
    for name, (metric, formatter) in build_rows(price).items():
        cells = [format_cell(metrics, metric, formatter) for metrics in (replay.actual, replay.baseline)]
        difference = format_difference(replay, metric, less_is_better=name not in OUTCOME_ROWS)
        rendered.add_row(
            name, *cells, *((format_range_cell(replay, metric, formatter), difference) if change_columns else ())
        )
    return rendered


def format_cell(metrics: ReplayMetrics | None, metric: Metric, formatter: Formatter) -> str:
    value = None if metrics is None else metric(metrics)
    return UNKNOWN_CELL if value is None else formatter(value)


def format_range_cell(replay: QueueReplay, metric: Metric, formatter: Formatter) -> str:
    """The median of the draws, and in parentheses the minimum and maximum if they differ."""
    draws = (replay.proposed, replay.proposed_min, replay.proposed_max)
    middle, minimum, maximum = (format_cell(metrics, metric, formatter) for metrics in draws)
    return middle if minimum == maximum else f"{middle} ({minimum}–{maximum})"


def format_difference(replay: QueueReplay, metric: Metric, *, less_is_better: bool) -> Text:
    """Compared with the replay of the actual settings, so that the error of the replay itself affects both sides."""
    baseline, proposed = replay.baseline, replay.proposed
    before, after = None if baseline is None else metric(baseline), None if proposed is None else metric(proposed)
    if not before or after is None:
        return Text(UNKNOWN_CELL)
    percent = round((after - before) / before * 100)
    if not percent:
        return Text("none", "dim")
    if replay.confidence == UNRELIABLE:
        return Text(format_percent(percent))
    good = (percent < 0) == less_is_better
    return Text(format_percent(percent), "green" if good else "red")


def format_percent(percent: int) -> str:
    return "▲ many times" if percent >= 1000 else f"{'▲' if percent > 0 else '▼'} {abs(percent)} %"


def format_confidence(replay: QueueReplay) -> list[Text]:
    reasons = [plain_text(f"  {reason}") for reason in replay.reasons]
    messages = [plain_text(f"  {assumption.message}", "dim") for assumption in replay.assumptions]
    assumptions = [plain_text("Assumptions:", "dim"), *messages] if messages else []
    confidence = plain_text(f"Confidence: {replay.confidence}", CONFIDENCE_STYLES.get(replay.confidence, ""))
    return [confidence, *reasons, *assumptions]


SETTING_TYPES = {field.name: field.type for field in cast(inspect.StructType, inspect.type_info(Config)).fields}


def parse_setting(text: str) -> tuple[str, Any]:
    """The setting can be named as in the API, in the settings file, or as an option."""
    given_name, _, value = text.partition("=")
    names = {_normalize_name(name): name for name in REPLAYABLE_SETTINGS}
    if _normalize_name(given_name) not in names:
        choices = ", ".join(REPLAYABLE_SETTINGS)
        raise typer.BadParameter(f"{given_name} is not a setting that can be replayed: use one of {choices}.")
    name = names[_normalize_name(given_name)]
    return name, _parse_value(name, value)


def _normalize_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _parse_value(name: str, text: str) -> Any:
    match SETTING_TYPES[name]:
        case inspect.BoolType():
            return parse_switch(text)
        case inspect.IntType(ge=minimum, le=maximum):
            return build_number_parser(minimum or 0, maximum or 0)(text)
        case inspect.EnumType(cls=choices):
            return _parse_choice(text, [str(choice.value) for choice in choices])
        case kind:
            raise TypeError(f"setting {name} has the unsupported type {kind}")


def _parse_choice(text: str, choices: list[str]) -> str:
    if text.lower() not in choices:
        raise typer.BadParameter(f"{text} is not a valid value: use one of {', '.join(choices)}.")
    return text.lower()


SetOption = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", parser=parse_setting, help="A setting to change in the replay. Can be repeated."
    ),
]
PriceOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="PRICE", help="The price of a CI minute, in any currency: shows the cost too."),
]


@with_session
def whatif(
    session: Session,
    since: SinceOption = "14d",  # pyright: ignore[reportArgumentType]
    assignments: SetOption = [],  # noqa: B006
    price: PriceOption = None,
) -> None:
    """Replay the history of a queue with other settings.

    The server replays the recorded submissions and test results, and reports what would have happened. It changes
    nothing. Without --set it reports how closely the replay reproduces the history.

    Examples:
        mergeyard whatif --set concurrency=20 --set batch=on
        mergeyard whatif --since 30d --set batchingMinSize=8 --price 0.008
    """
    settings: dict[str, Any] = dict(cast(list[tuple[str, Any]], assignments))
    with show_spinner("Replaying"):
        replay = session.client.replay_queue(session.queue, since=datetime.now(UTC) - since, **settings)
    session.show(replay, lambda: show_replay(replay, price))
