"""Another replica takes over: soon after a replica was killed, and at once after a clean shutdown."""

from time import monotonic

import pytest

from tests.replicas.conftest import Install
from tests.replicas.held_git import LANDING, HeldGit
from tests.replicas.installation import Installation
from tests.support.host_log import TEST_BRANCH_PREFIX, PushOutcome, PushStage
from tests.support.polling import eventually
from tests.support.replicas import Replica

MAX_SECONDS_AFTER_KILL = 15.0
MAX_SECONDS_AFTER_SHUTDOWN = 5.0
"""Half of a lease: a replica that had to wait for its expiry would be later, however busy the machine is."""


def other_than(replica: Replica, installation: Installation) -> Replica:
    """The other one of two."""
    return next(other for other in installation.replicas if other is not replica)


def test_another_replica_takes_over_within_15_seconds_after_a_kill(install: Install):
    installation = install()
    queue = installation.queue()
    queue.ci.enabled = False
    number = queue.open_pr({"a.txt": "1"})
    victim = installation.replicas.lease_holder()
    victim.kill()
    killed_at = monotonic()
    queue.submit(number)
    eventually(lambda: other_than(victim, installation).holds_lease)
    took = monotonic() - killed_at
    print(f"taken over {took:.1f} s after a kill")
    assert took <= MAX_SECONDS_AFTER_KILL
    queue.ci.enabled = True
    queue.wait_for("merged", number)


def test_another_replica_takes_over_at_once_after_a_clean_shutdown(install: Install):
    """Even a replica that has no mirror of the repository."""
    installation = install()
    queue = installation.queue()
    queue.ci.enabled = False
    first = installation.replicas.lease_holder()
    second = other_than(first, installation)
    number = queue.open_pr({"a.txt": "1"})
    installation.api_of(first, queue).post("submitPullRequest", pr={"number": number})
    queue.wait_for("testing", number)
    terminated_at = monotonic()
    first.process.terminate()
    eventually(lambda: second.holds_lease)
    took = monotonic() - terminated_at
    print(f"taken over {took:.1f} s after a clean shutdown")
    assert took <= MAX_SECONDS_AFTER_SHUTDOWN
    assert first.process.wait() == 0
    queue.ci.enabled = True
    queue.wait_for("merged", number)


@pytest.mark.long
@pytest.mark.parametrize("moment", [PushStage.PREPARED, PushStage.COMMITTED])
def test_pull_request_merges_when_a_replica_is_killed_while_it_discards_a_landing(install: Install, moment: PushStage):
    installation = install.not_started("all", "all")
    first, second = installation.replicas
    held = HeldGit(first)
    first.start()
    queue = installation.queue()
    number = queue.open_pr({"a.txt": "1"})
    held.hold(LANDING)
    queue.submit(number)
    queue.eventually(lambda: held.waits)
    second.start()
    queue.origin.commit("main", {"outside.txt": "1"})
    queue.host_log.signal_on_push("KILL", moment, PushOutcome.CONTINUES, ref=TEST_BRANCH_PREFIX)
    held.release()
    eventually(lambda: not first.alive)
    queue.wait_for("merged", number)
    assert set(queue.origin.files("main")) == {"README", "a.txt", "outside.txt"}
