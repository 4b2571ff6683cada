"""Two replicas assume they hold the lease: one is suspended before a push, the other takes over, the first resumes.

Whatever it does then changes nothing, neither at the host nor in the store.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from tests.replicas.conftest import Install
from tests.replicas.held_git import BUILD, DELETION, LANDING, HeldGit
from tests.replicas.installation import Installation
from tests.support.environment import QueueEnvironment
from tests.support.host_log import TEST_BRANCH_PREFIX, Transaction
from tests.support.polling import eventually
from tests.support.replicas import Replica

RESUMED = "replica_registration_expired"


class Scenario(Struct):
    first: Replica
    held: HeldGit
    installation: Installation
    queue: QueueEnvironment

    def stop_first_before(self, which: str, act: Callable[[], object]) -> None:
        self.held.hold(which)
        act()
        self.queue.eventually(lambda: self.held.waits)
        self.first.freeze()

    def let_first_push(self) -> None:
        """Its git runs while the replica itself is suspended."""
        self.held.release()
        eventually(lambda: self.held.over)

    def resume_first(self) -> None:
        self.first.thaw()
        eventually(lambda: RESUMED in [entry["event"] for entry in self.first.log_entries()])

    def refs_moved_by_service(self) -> list[Transaction]:
        return [transaction for transaction in self.queue.host_log if transaction.by_service]


def start_scenario(install: Install) -> Scenario:
    """The first replica holds the lease, and the second has none."""
    installation = install.not_started("all", "all")
    first, second = installation.replicas
    held = HeldGit(first)
    first.start()
    queue = installation.queue()
    eventually(lambda: first.holds_lease)
    second.start()
    return Scenario(first, held, installation, queue)


def without_estimates(pull: dict[str, Any]) -> dict[str, Any]:
    """Without the estimates, which change all the time."""
    return {name: value for name, value in pull.items() if not name.startswith("estimated")}


def test_landing_that_resumes_after_another_replica_landed_it_lands_nothing(install: Install):
    scenario = start_scenario(install)
    queue, number = scenario.queue, scenario.queue.open_pr({"a.txt": "1"})
    scenario.stop_first_before(LANDING, lambda: queue.submit(number))
    queue.wait_for("merged", number)
    moved, shown = scenario.refs_moved_by_service(), queue.submission(number)
    scenario.let_first_push()
    scenario.resume_first()
    later = queue.open_pr({"b.txt": "1"})
    assert (scenario.refs_moved_by_service(), queue.submission(number)) == (moved, shown)
    queue.submit(later)
    queue.wait_for("merged", later)


@pytest.mark.long
def test_landing_that_resumes_after_another_replica_discarded_it_lands_nothing(install: Install):
    scenario = start_scenario(install)
    queue, number = scenario.queue, scenario.queue.open_pr({"a.txt": "1"})
    scenario.stop_first_before(LANDING, lambda: queue.submit(number))
    queue.ci.enabled = False
    queue.origin.commit("main", {"outside.txt": "1"})
    queue.eventually(lambda: "target_branch_moved" in queue.reasons(number))
    queue.wait_for("testing", number)
    moved, shown = scenario.refs_moved_by_service(), without_estimates(queue.submission(number))
    scenario.let_first_push()
    scenario.resume_first()
    assert (scenario.refs_moved_by_service(), without_estimates(queue.submission(number))) == (moved, shown)
    queue.ci.enabled = True
    queue.wait_for("merged", number)


@pytest.mark.long
def test_test_branch_that_is_pushed_after_its_run_ended_is_deleted_and_tests_nothing(install: Install):
    scenario = start_scenario(install)
    queue, number = scenario.queue, scenario.queue.open_pr({"a.txt": "1"})
    scenario.stop_first_before(BUILD, lambda: queue.submit(number))
    queue.wait_for("merged", number)
    queue.wait_until_clean()
    tip, shown = queue.origin.tip("main"), queue.submission(number)
    queue.ci.enabled = False
    scenario.let_first_push()
    assert any(ref.startswith(TEST_BRANCH_PREFIX) for ref in queue.origin.refs())
    scenario.resume_first()
    scenario.installation.restart_and_clean_up()
    queue.ci.enabled = True
    queue.wait_until_clean()
    assert (queue.origin.tip("main"), queue.submission(number)) == (tip, shown)


@pytest.mark.long
def test_run_that_two_replicas_discard_is_discarded_once(install: Install):
    scenario = start_scenario(install)
    queue, number = scenario.queue, scenario.queue.open_pr({"a.txt": "1"})
    queue.ci.enabled = False
    queue.submit(number)
    queue.wait_for("testing", number)
    scenario.stop_first_before(DELETION, lambda: queue.cancel(number))
    queue.wait_until_clean()
    moved, shown = scenario.refs_moved_by_service(), queue.submission(number)
    scenario.let_first_push()
    scenario.resume_first()
    assert (scenario.refs_moved_by_service(), queue.submission(number)) == (moved, shown)
    queue.ci.enabled = True
    queue.submit(number)
    queue.wait_for("merged", number)
