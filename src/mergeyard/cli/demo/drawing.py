"""Draws a scene for people: the line as a picture, and a row for every pull request."""

from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from mergeyard.cli.demo.asking import Stay
from mergeyard.cli.demo.sample import PULLS
from mergeyard.cli.demo.scene import Group, Scene
from mergeyard.cli.demo.teahouse import BRANCH
from mergeyard.domain.states import PrState

STYLES = {
    PrState.NOT_READY: "dim",
    PrState.PENDING: "blue",
    PrState.TESTING: "yellow",
    PrState.PENDING_FAILURE: "magenta",
    PrState.TESTS_PASSED: "cyan",
    PrState.MERGED: "green",
    PrState.FAILED: "red",
    PrState.CANCELLED: "bright_black",
}
MARKS = {PrState.TESTING: "…", PrState.TESTS_PASSED: "✓", PrState.PENDING_FAILURE: "✗"}
BESIDE = " ⋔ "
LONGEST_STATE = max(map(len, PrState))
LEGEND = "… under test   ✓ passed   ✗ red   ⋔ seeks the guilty one of a red batch, beside the line"


def view(scene: Scene, seconds: float) -> Lines:
    count = f"{scene.decided} of {len(PULLS)} decided   {seconds:.1f} s"
    return Lines(picture(scene), Text(LEGEND, style="dim"), table(scene), Text(count, style="bold"))


def picture(scene: Scene) -> Text:
    drawn = Text(BRANCH, style="bold", no_wrap=True, overflow="ellipsis")
    joint = " ← "
    for group in scene.groups():
        joint = BESIDE if scene.is_bisection(group) else joint
        drawn.append(joint, style="not bold")
        drawn.append_text(batch(group))
        joint = "  " if joint == BESIDE else joint
    append_waiting(drawn, "waiting", scene.in_state(PrState.PENDING))
    append_waiting(drawn, "not ready", scene.in_state(PrState.NOT_READY))
    return drawn


def batch(group: Group) -> Text:
    alike = group[0].state
    return Text("+".join(str(stay.pr_number) for stay in group) + MARKS[alike], style=STYLES[alike])


def append_waiting(drawn: Text, what: str, group: Group) -> None:
    if group:
        drawn.append(f"   {what}: ", style="not bold dim")
        drawn.append(" ".join(str(stay.pr_number) for stay in group), style=STYLES[group[0].state])


def table(scene: Scene) -> Table:
    rows = Table(box=None, expand=True, header_style="dim")
    rows.add_column("PR")
    rows.add_column("what it does", no_wrap=True, ratio=3)
    rows.add_column("state", min_width=LONGEST_STATE)
    rows.add_column("waits for", no_wrap=True, ratio=1)
    rows.add_column("why", no_wrap=True, ratio=4)
    for number, pull in enumerate(PULLS, start=1):
        rows.add_row(f"#{number}", pull.title, *row(scene.stays.get(number)))
    return rows


def row(stay: Stay | None) -> tuple[Text, str, str]:
    return (state(stay), awaited(stay), stay.reason.message) if stay else (state(stay), "", "")


def state(stay: Stay | None) -> Text:
    return Text(stay.state, style=STYLES[stay.state]) if stay else Text("open", style="dim")


def awaited(stay: Stay) -> str:
    return ", ".join(f"#{number}" for number in stay.reason.waiting_for)
