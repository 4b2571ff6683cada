"""Turns all that is on file about a pull request into what its page shows."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL, PrState, RunStatus
from mergeyard.engine import estimating
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.dossiers import Dossier
from mergeyard.web.impact import Listed, listed
from mergeyard.web.pulls.journey import Station, journey
from mergeyard.web.pulls.readiness import Item, checklist
from mergeyard.web.pulls.timeline import Timeline, actor, timeline
from mergeyard.web.runs.checks import Check, Checks, checks
from mergeyard.web.runs.lasting import Span, span
from mergeyard.web.runs.purpose import purpose

MOST_SHARED = 5


class RunLine(Struct, frozen=True):
    """A run that it was in, in a few lines."""

    run: Run
    purpose: str
    checks: Checks
    span: Span


class Blame(Struct, frozen=True):
    """Why it failed: which run was red, through which checks, upon whom."""

    line: RunLine
    culprits: tuple[Check, ...]
    upon: tuple[PrNumber, ...]


class Neighbour(Struct, frozen=True):
    number: PrNumber
    title: str
    state: PrState
    shared: Listed


class PullShown(Struct, frozen=True, kw_only=True):
    dossier: Dossier
    live: bool
    submitted_by: str
    journey: tuple[Station, ...]
    checklist: tuple[Item, ...]
    blame: Blame | None
    runs: tuple[RunLine, ...]
    timeline: Timeline
    targets: Listed | None
    neighbours: tuple[Neighbour, ...]

    @property
    def current(self) -> RunLine | None:
        """The run that tests it right now."""
        return next((line for line in self.runs if line.run.active), None)

    @property
    def latest(self) -> bool:
        """Not an earlier stay, that a later one followed."""
        return self.dossier.view.stay.ticket == self.dossier.stays[0].ticket

    @property
    def may_restart(self) -> bool:
        return self.dossier.view.stay.state in (PrState.TESTING, PrState.PENDING_FAILURE)

    @property
    def may_submit_again(self) -> bool:
        return self.latest and self.dossier.view.stay.state in (PrState.FAILED, PrState.CANCELLED)


def shown(dossier: Dossier, source: ChecksFrom, now: Instant, first: int | None) -> PullShown:
    """`first`: of its timeline only so many from the beginning."""
    stay = dossier.view.stay
    live = stay.state not in TERMINAL
    usual = estimating.usual(dossier.queue)
    runs = tuple(
        RunLine(each.run, purpose(each.run, dossier.key.branch), checks(each, source), span(each.run, usual, now))
        for each in dossier.runs
    )
    return PullShown(
        dossier=dossier,
        live=live,
        submitted_by=actor(dossier.timeline[-1]) if dossier.timeline else "",
        journey=journey(stay.state, dossier.timeline),
        checklist=checklist(dossier.view, dossier.queue.state) if live else (),
        blame=_blame(dossier, runs) if stay.state is PrState.FAILED else None,
        runs=runs,
        timeline=timeline(dossier.timeline, first),
        targets=None if stay.targets is None else listed(stay.targets),
        neighbours=tuple(
            Neighbour(other.number, other.title, other.state, listed(other.shared, MOST_SHARED))
            for other in dossier.overlaps
        ),
    )


def _blame(dossier: Dossier, runs: Sequence[RunLine]) -> Blame | None:
    last = next((line for line in runs if line.run.status is RunStatus.FAILED), None)
    if last is None:
        return None
    beneath = tuple(member.number for member in last.run.beneath)
    return Blame(last, last.checks.culprits, dossier.view.stay.upon or beneath)
