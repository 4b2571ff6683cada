"""All that is on file about one pull request: where it stands, what it went through, and which runs it was in."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.domain.targets import Targets
from mergeyard.engine import reading
from mergeyard.service import recalling, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.listing import Listing
from mergeyard.service.runs import ReportedRun, Runs
from mergeyard.service.site import Sites
from mergeyard.service.stays import Stays
from mergeyard.service.views import PullView, view
from mergeyard.service.yard import Yard

MOST_STAYS = 20
MOST_RUNS = 20
MOST_OVERLAPS = 50
MOST_COMPARED = 2000
"""So many of the queue are asked what they impact: a page must not hold everybody else up."""


class Overlap(Struct, frozen=True):
    """Another one in the queue that impacts some of the same."""

    number: PrNumber
    title: str
    state: PrState
    shared: Targets


class Dossier(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    view: PullView
    stays: tuple[Submission, ...]
    """All of them, the latest first, as far as there is room for them."""
    page: str | None
    """Its page at the host."""
    timeline: tuple[PrChanged, ...]
    runs: tuple[ReportedRun, ...]
    """Every run it was in, newest first, as far as there is room for them."""
    older_runs: int
    overlaps: tuple[Overlap, ...]


class Dossiers:
    def __init__(self, yard: Yard, sites: Sites, stays: Stays, listing: Listing, runs: Runs) -> None:
        self._yard = yard
        self._sites = sites
        self._stays = stays
        self._listing = listing
        self._runs = runs

    async def queues(self, repo: Repo) -> list[QueueKey]:
        return sorted((keeper.key for keeper in await self._yard.of_repo_now(repo)), key=lambda key: key.branch)

    async def queue_of(self, repo: Repo, number: PrNumber) -> QueueKey | None:
        """Where it stays now, else where it stayed last."""
        latest: tuple[Instant, QueueKey] | None = None
        for keeper in await self._yard.of_repo_now(repo):
            if keeper.queue.submission_of(number) is not None:
                return keeper.key
            stay = await recalling.last_stay(self._yard.store, keeper.id, number)
            if stay is not None and (latest is None or stay.submitted_at > latest[0]):
                latest = (stay.submitted_at, keeper.key)
        return None if latest is None else latest[1]

    async def open(self, key: QueueKey, number: PrNumber, ticket: Ticket | None = None) -> Dossier:
        """About the stay with this ticket, else about its latest."""
        keeper, now = await self._yard.keeper(key), self._yard.clock.now()
        bodies = await self._yard.store.stays_of(keeper.id, number, MOST_STAYS)
        stored = map(shelving.decode_stay, bodies)
        stays = [keeper.queue.submissions.get(stay.ticket) or stay for stay in stored]
        if not stays:
            words = f"Pull request {number} was never submitted to the queue for {key}: submit it first."
            raise Refused(Code.PR_NOT_SUBMITTED, words)
        meant = next((stay for stay in stays if stay.ticket == ticket), stays[0])
        stay = await self._stays.with_targets(keeper, meant)
        seen = view(keeper.queue, stay, now, keeper.forecast)
        timeline = await self._listing.timeline(key, stay.ticket)
        runs = _runs_of(seen, timeline)
        return Dossier(
            key=key,
            queue=keeper.queue,
            view=seen,
            stays=tuple(stays),
            page=self._sites.host(key.repo.host).pull_page(key.repo, number),
            timeline=tuple(timeline),
            runs=await self._runs.reported(key, runs[:MOST_RUNS]),
            older_runs=max(0, len(runs) - MOST_RUNS),
            overlaps=tuple(islice(_overlaps(keeper.queue, stay, now), MOST_OVERLAPS)),
        )


def _runs_of(seen: PullView, timeline: Sequence[PrChanged]) -> list[RunId]:
    """The one to be shown first, then those before it."""
    named: Iterable[RunId | None] = (seen.run, *(entry.run for entry in timeline))
    return list(dict.fromkeys(run for run in named if run is not None))


def _overlaps(queue: Queue, stay: Submission, now: Instant) -> Iterator[Overlap]:
    """In single mode everybody shares the one line, whatever they impact."""
    targets = stay.targets
    if targets is None or stay.state in TERMINAL or queue.config.mode is Mode.SINGLE:
        return
    for other in islice(reading.enqueued(queue, now), MOST_COMPARED):
        if other.ticket != stay.ticket and other.targets is not None and targets.share_with(other.targets):
            yield Overlap(other.number, other.pull.title, other.state, _shared(targets, other.targets))


def _shared(one: Targets, other: Targets) -> Targets:
    if one.everything or other.everything:
        return Targets(everything=True)
    return Targets(one.names & other.names)
