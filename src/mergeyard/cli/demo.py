"""The demo shows a queue at work in the terminal, in a simulated repository with a simulated CI."""

import typer
from rich.console import Console
from rich.table import Table

from mergeyard.domain.config import Config
from mergeyard.domain.decision import Decision
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.pulls import Submission
from mergeyard.domain.reasons import MESSAGES
from mergeyard.engine.picture import picture
from mergeyard.sim.world import World

PULL_REQUESTS = {
    1: "adds a page",
    2: "adds a button",
    3: "breaks the tests",
    4: "adds a report",
    5: "renames a field",
    6: "still uses the old field: green alone, red together with 5",
    7: "rewrites the page, in conflict with 8",
    8: "moves the page, in conflict with 7",
    9: "repairs production, urgent",
}
FILES = {5: {"schema": "pr5"}, 6: {"query": "pr6"}, 7: {"page": "pr7"}, 8: {"page": "pr8"}}
URGENT = 9
AS_IT_SHOULD = {number: "failed" if number in (3, 6, 8) else "merged" for number in PULL_REQUESTS}


def play() -> None:
    """Watch a queue at work, in a simulated repository."""
    console = Console()
    console.print(
        "A queue with batches of two and four slots. [bold]✓[/] passed, [bold]✗[/] red, [bold]…[/] under test,"
    )
    console.print("[bold]⋔[/] is a bisection, which seeks the guilty one of a red batch beside the line.\n")
    world = World(Config(concurrency=4, batch=True, batching_min_size=2, batching_max_wait_time_minutes=0))
    world.truth.bad = {"pr3"}
    world.truth.bad_together = {frozenset({"pr5", "pr6"})}
    show_pictures(console, world)
    submit_everything(world)
    world.run_to_the_end()
    show_ends(console, world)
    green = world.truth.green(world.repository.commits[world.host.tip].files)
    console.print(f"\nThe main branch is {'[green]green' if green else '[red]red'}[/].")
    ends = {number: str(submission.state) for number, submission in world.ended.items()}
    raise typer.Exit(0 if green and ends == AS_IT_SHOULD else 1)


def submit_everything(world: World) -> None:
    for number in PULL_REQUESTS:
        world.open(number, FILES.get(number))
    world.tell(*(world.submission(number) for number in PULL_REQUESTS if number != URGENT))
    world.perform_all()
    world.tell(world.submission(URGENT, priority=0))


def show_pictures(console: Console, world: World) -> None:
    shown = [""]

    def show(_before: object, _events: object, decision: Decision) -> None:
        drawn = picture(decision.queue)
        if drawn != shown[-1]:
            shown.append(drawn)
            console.print(drawn, highlight=False)

    world.watchers.append(show)


def show_ends(console: Console, world: World) -> None:
    table = Table("PR", "what it does", "state", "why")
    for number, what in PULL_REQUESTS.items():
        submission = world.ended[PrNumber(number)]
        colour = "green" if submission.state == "merged" else "red"
        table.add_row(f"#{number}", what, f"[{colour}]{submission.state}[/]", why(submission))
    console.print()
    console.print(table)


def why(submission: Submission) -> str:
    upon = ", ".join(f"#{number}" for number in submission.upon)
    return MESSAGES[submission.reason] + (f" It was red upon {upon}." if upon else "")
