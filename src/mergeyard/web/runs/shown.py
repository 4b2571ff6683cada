"""Turns a run into what its page shows: the stack as a picture, its checks, its time."""

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.required import RequiredSource
from mergeyard.domain.runs import Member
from mergeyard.engine import estimating
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.runs import ReportedRun, RunView, TestedPull
from mergeyard.web.impact import Listed, listed
from mergeyard.web.runs.checks import Checks, checks
from mergeyard.web.runs.lasting import Span, span
from mergeyard.web.runs.purpose import purpose, remarks

SOURCES = {
    RequiredSource.MERGE_INSTANCE: "the queue's settings",
    RequiredSource.SERVICE_CONFIG: ".mergeyard.toml on the target branch",
    RequiredSource.BRANCH_PROTECTION: "the host's branch protection",
}


class Car(Struct, frozen=True):
    """One pull request in the stack, and the commit that it became there."""

    number: PrNumber
    title: str
    head: Sha
    commit: Sha
    page: str | None = None
    """At the host."""


class RunShown(Struct, frozen=True, kw_only=True):
    key: QueueKey
    view: RunView
    purpose: str
    remarks: tuple[str, ...]
    beneath: tuple[Car, ...]
    tested: tuple[Car, ...]
    checks: Checks
    required_by: str
    span: Span
    impact: Listed | None
    impact_of_tested: Listed | None

    @property
    def live(self) -> bool:
        return self.view.run.active


def shown(key: QueueKey, queue: Queue, view: RunView, source: ChecksFrom, now: Instant) -> RunShown:
    run, impact = view.run, view.impact
    known = _known(queue, view)
    cars = [_car(known, member, step.commit) for member, step in zip(run.stack, run.chain, strict=False)]
    parting = len(run.beneath)
    return RunShown(
        key=key,
        view=view,
        purpose=purpose(run, key.branch),
        remarks=tuple(remarks(run, queue)),
        beneath=tuple(cars[:parting]),
        tested=tuple(cars[parting:]),
        checks=checks(ReportedRun(run, view.statuses), source),
        required_by=SOURCES[run.required_source],
        span=span(run, estimating.usual(queue), now),
        impact=None if impact is None else listed(impact.all),
        impact_of_tested=None if impact is None else listed(impact.tested),
    )


def _known(queue: Queue, view: RunView) -> dict[PrNumber, TestedPull]:
    """Those that it tests, and those beneath that are still in the queue."""
    live = (queue.submissions.get(member.ticket) for member in view.run.beneath)
    beneath = {stay.number: TestedPull(stay.number, stay.pull.title, None) for stay in live if stay is not None}
    return beneath | {pull.number: pull for pull in view.pulls}


def _car(known: dict[PrNumber, TestedPull], member: Member, commit: Sha) -> Car:
    pull = known.get(member.number) or TestedPull(member.number, "", None)
    return Car(member.number, pull.title, member.head, commit, pull.page)
