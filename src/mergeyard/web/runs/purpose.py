"""Says in a sentence what a run is for, and what is special about it."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import MESSAGES
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.web.words import lasting

MOST_NAMED = 6


def purpose(run: Run, target: str) -> str:
    match run.kind:
        case RunKind.LINE:
            together = " together, as they would merge" if run.tests > 1 else " as it would merge"
            return f"It tests {_named(run.tested)}{together}, upon {_named(run.beneath) or target}."
        case RunKind.BISECTION:
            upon = f", upon {_named(run.beneath)}" if run.beneath else ""
            return f"A batch was red, and the guilty one is sought: it tests {_named(run.tested)}{upon}."
        case RunKind.BARE:
            return f"It tests {target} itself, with no pull request, before anyone is blamed upon it."
        case _:
            assert_never(run.kind)


def remarks(run: Run, queue: Queue) -> Iterator[str]:
    if run.attempt:
        yield f"This is attempt {run.attempt + 1}: before it was red, and the queue tries again before it judges."
    if run.timed_out:
        yield f"Its time ran out: not everything was reported within {lasting(run.timeout)}."
    if run.restarted:
        yield "Somebody asked for it to be run again."
    if run.void is not None:
        yield f"Its result no longer counts. {MESSAGES[run.void]}"
    elif run.status is RunStatus.CANCELLED:
        yield "It was stopped, because its result would no longer count."
    left_out = [queue.submissions[ticket].number for ticket in run.left_out if ticket in queue.submissions]
    if left_out:
        yield f"Left out, because expected to leave: {_listed(left_out)}."


def _named(members: Iterable[Member]) -> str:
    return _listed([member.number for member in members])


def _listed(numbers: list[PrNumber]) -> str:
    """#1, #2 and #3; of many only the first."""
    names = [f"#{number}" for number in numbers]
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    *most, last = names or [""]
    return f"{', '.join(most)} and {last}" if most else last
