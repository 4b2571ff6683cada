"""Nobody works for a repository without being on duty for it, and whoever was is told when that ends."""

from pathlib import Path

import pytest
from msgspec import Struct, field

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import Relieved
from mergeyard.ports.writes import ProveDuty
from mergeyard.service.duties import Duties
from mergeyard.service.turn import Keeper
from tests.support.clock import HandClock

APP, LIB = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "lib")
LASTING = 10_000


class Hand(Struct):
    """Works for whoever it was told of and has not left."""

    works_for: list[Keeper] = field(default_factory=list[Keeper])

    def follow(self, keeper: Keeper, _: Queue | None) -> None:
        self.works_for.append(keeper)

    def leave(self, keeper: Keeper) -> None:
        self.works_for.remove(keeper)


class Crew:
    """A replica that reported a moment ago, with a queue in each of two repositories."""

    def __init__(self, *duties: Duty) -> None:
        self.clock = HandClock()
        self.duties = Duties(self.clock)
        self.hand = Hand()
        self.duties.followers.append(self.hand)
        self.keepers = {repo: self._keeper(repo) for repo in (APP, LIB)}
        self.duties.share("one")
        self.duties.last_until(later(self.clock.now(), LASTING))
        self.hold(*duties)

    def _keeper(self, repo: Repo) -> Keeper:
        queue = Queue(id=QueueId(repo.name), target=TargetBranch(name="main"))
        return Keeper(QueueKey(repo, "main"), queue, 1, SqliteStore(Path("nowhere")), self.clock)

    def hold(self, *duties: Duty) -> None:
        self.duties.set(duties, lambda repo: [self.keepers[repo]])

    def tell(self, repo: Repo) -> None:
        self.duties.follow(self.keepers[repo], None)


def test_a_server_that_is_alone_works_for_all_and_proves_nothing():
    duties = Duties(HandClock())
    assert duties.covers(APP)
    assert duties.proof(APP) == ()


def test_a_replica_works_only_for_what_it_was_given():
    crew = Crew(Duty(APP, 3))
    crew.tell(APP)
    crew.tell(LIB)
    assert crew.hand.works_for == [crew.keepers[APP]]


def test_what_is_done_on_duty_proves_it_by_the_fence():
    crew = Crew(Duty(APP, 3))
    assert crew.duties.proof(APP) == (ProveDuty("one", APP, 3),)
    with pytest.raises(Relieved):
        crew.duties.proof(LIB)


def test_whoever_is_relieved_stops_working():
    crew = Crew(Duty(APP, 3), Duty(LIB, 1))
    crew.tell(APP)
    crew.tell(LIB)
    crew.hold(Duty(LIB, 1))
    assert crew.hand.works_for == [crew.keepers[LIB]]
    assert not crew.duties.covers(APP)


def test_what_somebody_else_had_meanwhile_is_begun_anew():
    crew = Crew(Duty(APP, 3))
    crew.tell(APP)
    assert crew.duties.missing([Duty(APP, 5)]) == (APP,)
    crew.hold(Duty(APP, 5))
    assert crew.hand.works_for == []


def test_whoever_was_silent_for_too_long_works_for_nobody():
    crew = Crew(Duty(APP, 3))
    crew.clock.move_to(Instant(crew.clock.now() + LASTING))
    crew.tell(APP)
    assert crew.hand.works_for == []
    assert crew.duties.lapsed
