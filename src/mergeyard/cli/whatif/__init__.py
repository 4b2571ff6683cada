"""The command that has a queue's past replayed under other settings."""

from datetime import UTC, datetime
from typing import Annotated, Any, cast

import typer

from mergeyard.cli.runs import Since
from mergeyard.cli.session import Session, asking
from mergeyard.cli.terminal import busy
from mergeyard.cli.whatif.showing import show
from mergeyard.cli.whatif.wishes import read_wish

Wishes = Annotated[
    list[str],
    typer.Option("--set", metavar="NAME=VALUE", parser=read_wish, help="A setting as it should have been. Repeat it."),
]
Price = Annotated[
    float | None,
    typer.Option(min=0, metavar="PRICE", help="What a minute of CI costs, in any currency: shows the cost as well."),
]


@asking
def whatif(
    session: Session,
    since: Since = "14d",  # pyright: ignore[reportArgumentType]
    wishes: Wishes = [],  # noqa: B006
    price: Price = None,
) -> None:
    """Replay a queue's past under other settings.

    The server lets everybody come as they came, lets runs take as long and say what they did, and tells what would have
    been. Without --set it tells how well its replay meets what really was.
    """
    wished: dict[str, Any] = dict(cast(list[tuple[str, Any]], wishes))
    with busy("Replaying"):
        replay = session.client.replay_queue(session.queue, since=datetime.now(UTC) - since, **wished)
    session.show(replay, lambda: show(replay, price))
