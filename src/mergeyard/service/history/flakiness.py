"""Finds checks that contradict themselves: red and green upon the same pull requests, heads and base.

Such runs are repeats: retries of a red run, restarts that somebody asked for, or a prefix that was tested again. A
check that answers both ways there does not test the change alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.instants import Instant
from mergeyard.service.history.past import PastRun

EVIDENCE_SHOWN = 3


class Contradiction(Struct, frozen=True):
    """A check that was red, and green upon the same; the latest run of either colour."""

    queue: QueueId
    check: str
    reds: int
    red: RunId
    green: RunId
    at: Instant


class Suspect(Struct, frozen=True):
    queue: QueueId
    check: str
    stacks: int
    """Upon how many stacks it contradicted itself."""
    reds: int
    """In how many runs it was red upon them."""
    reports: int
    """In how many runs it was red or green at all."""
    last: Instant
    evidence: tuple[Contradiction, ...]
    """The latest first."""


def suspects(runs: Iterable[PastRun]) -> list[Suspect]:
    """Who contradicted itself most often comes first; among equals, who did so last."""
    reports, upon = defaultdict[tuple[QueueId, str], int](int), defaultdict[tuple[QueueId, bytes], list[PastRun]](list)
    for run in runs:
        upon[run.queue, run.stack].append(run)
        for check in (*run.red, *run.green):
            reports[run.queue, check] += 1
    found = defaultdict[tuple[QueueId, str], list[Contradiction]](list)
    for repeats in upon.values():
        for each in _contradictions(repeats):
            found[each.queue, each.check].append(each)
    suspected = [_suspect(each, reports[which]) for which, each in found.items()]
    return sorted(suspected, key=lambda suspect: (-suspect.stacks, -suspect.last, suspect.check))


def _contradictions(repeats: Sequence[PastRun]) -> Iterator[Contradiction]:
    red = {check for run in repeats for check in run.red}
    green = {check for run in repeats for check in run.green}
    for check in sorted(red & green):
        reds = [run for run in repeats if check in run.red]
        last_red = max(reds, key=_decided)
        last_green = max((run for run in repeats if check in run.green), key=_decided)
        at = max(last_red.decided_at, last_green.decided_at)
        yield Contradiction(last_red.queue, check, len(reds), last_red.id, last_green.id, at)


def _decided(run: PastRun) -> Instant:
    return run.decided_at


def _suspect(contradictions: Sequence[Contradiction], reports: int) -> Suspect:
    latest = sorted(contradictions, key=lambda each: each.at, reverse=True)
    return Suspect(
        queue=latest[0].queue,
        check=latest[0].check,
        stacks=len(latest),
        reds=sum(each.reds for each in latest),
        reports=reports,
        last=latest[0].at,
        evidence=tuple(latest[:EVIDENCE_SHOWN]),
    )
