"""Draws a scene so that it fits on the screen: the line batch behind batch, and below whoever waits or has left."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mergeyard.cli.plainly import plain
from mergeyard.cli.showing import STYLES, span, state, why
from mergeyard.cli.top.looking import Seen
from mergeyard.cli.top.scene import Batch, Scene
from mergeyard.client import EnqueuedPullRequest, Run

MARKS = {"testing": "…", "tests_passed": "✓", "pending_failure": "✗"}
PENDING = "pending"

Row = tuple[Text, Text, Text, Text, Text]


class Section(Struct, frozen=True):
    title: str
    rows: Sequence[Row]


def view(seen: Seen, now: datetime, height: int, hint: str = "") -> RenderableType:
    """All of it, when the screen is high enough; else the first of every section, and how many more there are."""
    scene = seen.scene
    above = [
        header(scene, now, hint),
        *([] if seen.trouble is None else [trouble(seen.trouble)]),
        picture(scene),
        Text(),
    ]
    parts = [section for section in sections(scene, now) if section.rows]
    room = height - len(above) - 2 * len(parts)
    shares = shared([len(section.rows) for section in parts], room)
    drawn = [drawn_section(section, share) for section, share in zip(parts, shares, strict=True)]
    return Group(*above, *(drawn or [Text("Nobody is in the queue.", "dim")]))


def header(scene: Scene, now: datetime, hint: str) -> Text:
    under_way = sum(len(batch.pulls) for batch in (*scene.line, *scene.bisections))
    counts = f"{under_way} in the line   {len(scene.waiting)} waiting   {len(scene.not_ready)} not ready"
    clock = now.astimezone().strftime("%H:%M:%S")
    name, queue_state = plain(scene.queue.named, "bold"), state(scene.queue.state)
    return one_line(Text.assemble(name, "   ", queue_state, f"   {counts}   ", (f"{clock}   {hint}", "dim")))


def trouble(words: str) -> Text:
    return one_line(plain(f"The server does not answer as it should, and is asked again: {words}", "bold red"))


def picture(scene: Scene) -> Text:
    """`main ← 12✓ ← 13+14…`."""
    drawn = plain(scene.queue.branch, "bold")
    for batch in scene.line:
        numbers = "+".join(str(pull.pr_number) for pull in batch.pulls)
        drawn.append(" ← ", "not bold dim")
        drawn.append(f"{numbers}{MARKS.get(batch.state, '')}", f"not bold {STYLES.get(batch.state, '')}")
    return one_line(drawn)


def sections(scene: Scene, now: datetime) -> Iterable[Section]:
    yield Section("The line", [row for batch in scene.line for row in batch_rows("←", batch, now)])
    yield Section("Seeking the guilty one", [row for batch in scene.bisections for row in batch_rows("⋔", batch, now)])
    yield Section(
        "Waiting", [pull_row(str(pull.position or ""), pull, plain(why(pull.reason))) for pull in scene.waiting]
    )
    yield Section("Not ready", [pull_row("–", pull, plain(why(pull.reason))) for pull in scene.not_ready])
    yield Section("Concluded", [pull_row("", pull, ago(pull, now)) for pull in scene.concluded])


def batch_rows(mark: str, batch: Batch, now: datetime) -> Iterable[Row]:
    """The run of a batch stands beside its first."""
    first, *others = batch.pulls
    yield pull_row(mark, first, plain(why(first.reason)) if batch.run is None else run_words(batch.run, now))
    for pull in others:
        yield pull_row("+", pull, Text())


def pull_row(mark: str, pull: EnqueuedPullRequest, words: Text) -> Row:
    return Text(mark, "dim"), Text(f"#{pull.pr_number}", "bold"), plain(pull.pr_title), state(pull.state), words


def run_words(run: Run, now: datetime) -> Text:
    said = run.checks
    done = sum(said.get(name, PENDING) != PENDING for name in run.required_statuses)
    upon = "  upon " + ", ".join(f"#{number}" for number in run.dependent_prs) if run.dependent_prs else ""
    elapsed = span((now - run.created_at).total_seconds())
    return Text(f"{done}/{len(run.required_statuses)} checks  {elapsed}{upon}")


def ago(pull: EnqueuedPullRequest, now: datetime) -> Text:
    return Text.assemble(f"{span((now - pull.state_changed_at).total_seconds())} ago  ", plain(why(pull.reason), "dim"))


def drawn_section(section: Section, share: int) -> RenderableType:
    rows, hidden = section.rows[:share], len(section.rows) - share
    more = f"  and {hidden} more" if hidden else ""
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(width=4, justify="right")
    table.add_column(width=7)
    for ratio in (3, None, 4):
        table.add_column(ratio=ratio, width=None if ratio else 15, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return Group(Text.assemble((section.title, "bold"), (more, "dim")), table, Text())


def shared(needs: Sequence[int], room: int) -> list[int]:
    """Row by row to everybody in turn who needs one more, until there is no room."""
    shares = [0] * len(needs)
    while room > 0 and shares != list(needs):
        for at, need in enumerate(needs):
            if room > 0 and shares[at] < need:
                shares[at] += 1
                room -= 1
    return shares


def one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
