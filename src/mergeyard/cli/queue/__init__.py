"""Commands around queues: make them, steer them, look into them."""

from typing import Annotated, Literal

import typer

from mergeyard.cli.choosing import named_repo, same_repo
from mergeyard.cli.plainly import say
from mergeyard.cli.queue.settings import taking_settings
from mergeyard.cli.session import Session, asking
from mergeyard.cli.showing import show_queue, show_queues
from mergeyard.cli.terminal import busy
from mergeyard.client import Queue, Queues, Settings

app = typer.Typer(name="queue", no_args_is_help=True, help="Queues: make them, steer them, look into them.")

DropStatuses = Annotated[
    bool, typer.Option("--delete-required-statuses", help="Let the repository choose its statuses again.")
]


@app.command("list")
@asking
def list_all(session: Session) -> None:
    """List the queues that the token sees, or those of --repo and --branch."""
    whom = session.whom
    repo = None if whom.repo is None else named_repo(whom.repo)
    queues = [
        queue
        for queue in session.client.list_queues().queues
        if same_repo(repo, queue.named) and whom.branch in (None, queue.branch)
    ]
    session.show(Queues(queues=tuple(queues)), lambda: show_queues(queues))


@app.command()
@asking
def show(session: Session) -> None:
    """Show a queue, with everybody in it."""
    told(session, session.client.get_queue(session.queue))


@app.command()
@asking
@taking_settings
def create(session: Session, settings: Settings) -> None:
    """Make a queue for a branch.

    The first time a repository is fetched, so this may take a while.
    """
    with busy("Making the queue"):
        queue = session.client.create_queue(session.new_queue, **settings)
    told(session, queue)


@app.command()
@asking
@taking_settings
def update(session: Session, settings: Settings, delete_required_statuses: DropStatuses = False) -> None:
    """Change the settings that are named; all others stay as they are."""
    if delete_required_statuses:
        settings["required_statuses"] = None
    told(session, session.client.update_queue(session.queue, **settings))


@app.command()
@asking
def delete(session: Session) -> None:
    """Delete a queue that is empty."""
    deleted = session.client.delete_queue(session.queue)
    session.show(deleted, lambda: say(f"Deleted the queue for {session.queue}."))


@app.command()
@asking
def pause(session: Session) -> None:
    """Let nothing enter, start or merge until it is resumed.

    Ends when nothing is being pushed any more.
    """
    turn(session, "PAUSED", "Pausing")


@app.command()
@asking
def resume(session: Session) -> None:
    """Let everything go on."""
    turn(session, "RUNNING", "Resuming")


@app.command()
@asking
def drain(session: Session) -> None:
    """Finish what is in the queue, and let nothing new enter."""
    turn(session, "DRAINING", "Draining")


def turn(session: Session, state: Literal["RUNNING", "PAUSED", "DRAINING"], words: str) -> None:
    with busy(words):
        queue = session.client.update_queue(session.queue, state=state)
    told(session, queue)


def told(session: Session, queue: Queue) -> None:
    session.show(queue, lambda: show_queue(queue))
