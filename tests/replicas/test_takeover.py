"""When a replica goes, another works on for its queues: soon after a death, and at once after a clean end."""

from time import monotonic

import pytest

from tests.replicas.conftest import Install
from tests.replicas.held_git import LANDING, HeldGit
from tests.replicas.installation import Installation
from tests.support.host_log import TEST_BRANCHES, Fate, Moment
from tests.support.patience import eventually
from tests.support.replicas import Replica

SECONDS_AFTER_A_DEATH = 15.0
SECONDS_AFTER_A_CLEAN_END = 5.0
"""Half of a lease: whoever had to wait for its end would be later, however busy the machine is."""


def other_than(replica: Replica, installation: Installation) -> Replica:
    """The other one of two."""
    return next(other for other in installation.replicas if other is not replica)


def test_after_a_death_another_replica_takes_over_within_15_seconds(install: Install):
    installation = install()
    queue = installation.queue()
    queue.ci.working = False
    number = queue.open_pr({"a.txt": "1"})
    victim = installation.replicas.on_duty()
    victim.kill()
    killed_at = monotonic()
    queue.submit(number)
    eventually(lambda: other_than(victim, installation).on_duty)
    took = monotonic() - killed_at
    print(f"taken over {took:.1f} s after a death")
    assert took <= SECONDS_AFTER_A_DEATH
    queue.ci.working = True
    queue.wait_for("merged", number)


def test_after_a_clean_end_another_replica_takes_over_at_once(install: Install):
    """Even one that never had anything to do with the repository."""
    installation = install()
    queue = installation.queue()
    queue.ci.working = False
    leaving = installation.replicas.on_duty()
    staying = other_than(leaving, installation)
    number = queue.open_pr({"a.txt": "1"})
    installation.through(leaving, queue).post("submitPullRequest", pr={"number": number})
    queue.wait_for("testing", number)
    told_to_end_at = monotonic()
    leaving.process.terminate()
    eventually(lambda: staying.on_duty)
    took = monotonic() - told_to_end_at
    print(f"taken over {took:.1f} s after a clean end")
    assert took <= SECONDS_AFTER_A_CLEAN_END
    assert leaving.process.wait() == 0
    queue.ci.working = True
    queue.wait_for("merged", number)


@pytest.mark.long
@pytest.mark.parametrize("moment", [Moment.PREPARED, Moment.COMMITTED])
def test_who_dies_while_giving_a_landing_up_leaves_nobody_in_the_lurch(install: Install, moment: Moment):
    installation = install.asleep("all", "all")
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
    queue.host_log.ambush("KILL", moment, Fate.GOES_ON, ref=TEST_BRANCHES)
    held.release()
    eventually(lambda: not first.alive)
    queue.wait_for("merged", number)
    assert set(queue.origin.files("main")) == {"README", "a.txt", "outside.txt"}
