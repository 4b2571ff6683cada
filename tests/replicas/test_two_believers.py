"""Two replicas believe to be on duty: one is stopped before a push, the other takes over, the first goes on.

Whatever it does then changes nothing, neither at the host nor in the store.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from tests.replicas.conftest import Install
from tests.replicas.held_git import BUILD, GIVING_UP, LANDING, HeldGit
from tests.replicas.installation import Installation
from tests.support.host_log import TEST_BRANCHES, Transaction
from tests.support.patience import eventually
from tests.support.replicas import Replica
from tests.support.surroundings import Surroundings

AWAKE_AGAIN = "this replica was silent for too long and begins anew"


class Scene(Struct):
    first: Replica
    held: HeldGit
    installation: Installation
    queue: Surroundings

    def stop_first_before(self, which: str, act: Callable[[], object]) -> None:
        self.held.hold(which)
        act()
        self.queue.eventually(lambda: self.held.waits)
        self.first.freeze()

    def let_first_push(self) -> None:
        """Its git is awake while it sleeps itself."""
        self.held.release()
        eventually(lambda: self.held.over)

    def wake_first(self) -> None:
        self.first.thaw()
        eventually(lambda: AWAKE_AGAIN in [entry["event"] for entry in self.first.told()])

    def refs_moved_by_service(self) -> list[Transaction]:
        return [transaction for transaction in self.queue.host_log if transaction.by_service]


def set_scene(install: Install) -> Scene:
    """The first is on duty, and the second has nothing to do."""
    installation = install.asleep("all", "all")
    first, second = installation.replicas
    held = HeldGit(first)
    first.start()
    queue = installation.queue()
    eventually(lambda: first.on_duty)
    second.start()
    return Scene(first, held, installation, queue)


def without_guesses(pull: dict[str, Any]) -> dict[str, Any]:
    """When it will merge is guessed anew with every moment that passes."""
    return {name: value for name, value in pull.items() if not name.startswith("estimated")}


def test_a_landing_that_goes_on_after_another_replica_has_landed_it_lands_nothing(install: Install):
    scene = set_scene(install)
    queue, number = scene.queue, scene.queue.open_pr({"a.txt": "1"})
    scene.stop_first_before(LANDING, lambda: queue.submit(number))
    queue.wait_for("merged", number)
    moved, told = scene.refs_moved_by_service(), queue.pull(number)
    scene.let_first_push()
    scene.wake_first()
    later = queue.open_pr({"b.txt": "1"})
    assert (scene.refs_moved_by_service(), queue.pull(number)) == (moved, told)
    queue.submit(later)
    queue.wait_for("merged", later)


@pytest.mark.long
def test_a_landing_that_goes_on_after_another_replica_has_given_it_up_lands_nothing(install: Install):
    scene = set_scene(install)
    queue, number = scene.queue, scene.queue.open_pr({"a.txt": "1"})
    scene.stop_first_before(LANDING, lambda: queue.submit(number))
    queue.ci.working = False
    queue.origin.commit("main", {"outside.txt": "1"})
    queue.eventually(lambda: "target_branch_moved" in queue.reasons(number))
    queue.wait_for("testing", number)
    moved, told = scene.refs_moved_by_service(), without_guesses(queue.pull(number))
    scene.let_first_push()
    scene.wake_first()
    assert (scene.refs_moved_by_service(), without_guesses(queue.pull(number))) == (moved, told)
    queue.ci.working = True
    queue.wait_for("merged", number)


@pytest.mark.long
def test_a_test_branch_that_goes_up_after_its_run_is_over_goes_away_and_tests_nothing(install: Install):
    scene = set_scene(install)
    queue, number = scene.queue, scene.queue.open_pr({"a.txt": "1"})
    scene.stop_first_before(BUILD, lambda: queue.submit(number))
    queue.wait_for("merged", number)
    queue.wait_for_cleanliness()
    tip, told = queue.origin.tip("main"), queue.pull(number)
    queue.ci.working = False
    scene.let_first_push()
    assert any(ref.startswith(TEST_BRANCHES) for ref in queue.origin.refs())
    scene.wake_first()
    scene.installation.sweep()
    queue.ci.working = True
    queue.wait_for_cleanliness()
    assert (queue.origin.tip("main"), queue.pull(number)) == (tip, told)


@pytest.mark.long
def test_a_run_that_is_given_up_once_more_after_another_replica_has_given_it_up_is_given_up_once(install: Install):
    scene = set_scene(install)
    queue, number = scene.queue, scene.queue.open_pr({"a.txt": "1"})
    queue.ci.working = False
    queue.submit(number)
    queue.wait_for("testing", number)
    scene.stop_first_before(GIVING_UP, lambda: queue.cancel(number))
    queue.wait_for_cleanliness()
    moved, told = scene.refs_moved_by_service(), queue.pull(number)
    scene.let_first_push()
    scene.wake_first()
    assert (scene.refs_moved_by_service(), queue.pull(number)) == (moved, told)
    queue.ci.working = True
    queue.submit(number)
    queue.wait_for("merged", number)
