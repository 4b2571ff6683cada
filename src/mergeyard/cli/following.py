"""Follows one pull request until its stay in the queue is over."""

import time
from collections.abc import Callable

from mergeyard.cli.exits import Ends
from mergeyard.cli.session import Session
from mergeyard.cli.showing import why
from mergeyard.cli.terminal import busy
from mergeyard.client import Moment, SubmittedPullRequest

BETWEEN_LOOKS = 1.0
ENDS = {"merged": Ends.DONE, "failed": Ends.FAILED, "cancelled": Ends.CANCELLED}


def follow(session: Session, number: int, tell: Callable[[Moment], None]) -> SubmittedPullRequest:
    """Tells of every change once, oldest first; on a terminal a line below says what it waits for."""
    session.be_patient()
    stay, told = "", 0
    with busy(f"#{number}") as say:
        while True:
            pull = session.client.get_pull_request(session.queue, number, include_timeline=True)
            moments = pull.timeline or ()
            told = told if pull.id == stay else 0
            stay = pull.id
            for moment in reversed(moments[: len(moments) - told]):
                tell(moment)
            told = len(moments)
            if pull.over:
                return pull
            say(f"#{number} {pull.state}: {why(pull.reason)}")
            time.sleep(BETWEEN_LOOKS)


def nobody(_: Moment) -> None:
    """Wants only to know the end."""


def end_of(pull: SubmittedPullRequest) -> Ends:
    """A state that is new to us is none that was hoped for."""
    return ENDS.get(pull.state, Ends.FAILED)
