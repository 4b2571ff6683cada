"""Commands around test runs; without a command the results are listed."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mergeyard.cli.session import Session, asking
from mergeyard.cli.showing import show_results, show_run

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class ListedByDefault(TyperGroup):
    """`mergeyard runs --since 2d` is `mergeyard runs list --since 2d`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        bare = not args or (args[0].startswith("-") and args[0] != "--help")
        return super().parse_args(ctx, ["list", *args] if bare and not ctx.resilient_parsing else args)


app = typer.Typer(name="runs", cls=ListedByDefault, help="Test runs and their results.")


def read_age(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9]\d{0,3})([mhdw])", text)
    if found is None:
        raise typer.BadParameter(f"{text} is no time: write 30m, 12h, 7d or 2w.")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


Since = Annotated[
    timedelta, typer.Option("--since", metavar="AGE", parser=read_age, help="Not older than 30m, 12h, 7d, 2w.")
]


@app.command("list")
@asking
def list_results(
    session: Session,
    since: Since = "1d",  # pyright: ignore[reportArgumentType]
    take: Annotated[int, typer.Option("--take", min=1, max=100, help="How many at most.")] = 50,
) -> None:
    """List the results of finished runs, the latest first."""
    results = session.client.list_results(session.queue, since=datetime.now(UTC) - since, take=take)
    session.show(results, lambda: show_results(results.testing_results))


@app.command()
@asking
def show(
    session: Session, run_id: Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard runs` shows it.")]
) -> None:
    """Show one run: what it tests, upon what, and what its checks say."""
    run = session.client.get_run(session.queue, run_id)
    session.show(run, lambda: show_run(run))
