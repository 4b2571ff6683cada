"""Worlds that once broke a promise, shrunk to what broke it."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import config as configs
from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod, Mode, Speculation
from mergeyard.domain.states import QueueState
from tests.simulation import script as scripts
from tests.simulation.campaign import as_test, play_script
from tests.simulation.faults import Family
from tests.simulation.generator import draw
from tests.simulation.planted import WITHDRAWN_WHILE_DOWN
from tests.simulation.script import (
    Approve,
    Cancel,
    FaultPeriod,
    Freeze,
    Heads,
    JumpClock,
    Kill,
    MergeByHand,
    Nature,
    PullAndPush,
    Push,
    PushForged,
    PushToTarget,
    Restart,
    RestoreHead,
    Retarget,
    RewindTarget,
    RewriteHead,
    Script,
    SetState,
    Submit,
    Upload,
    Withdraw,
)

STORIES = {
    "a forge that shows late what it merged before a replica died": Script(
        seed=1063,
        config=Config(testing_timeout_minutes=1, landing=LandingMethod.PROVIDER_MERGE),
        replicas=3,
        has_forge=True,
        acts=(
            Submit(at=69926, pr=7, forced=True),
            FaultPeriod(at=84280, of=Family.LOST_NOTICES, for_ms=60000, percent=60),
            Kill(at=84683, replica=1, for_ms=30000),
            FaultPeriod(at=94035, of=Family.STALE_READS, for_ms=60000, percent=30),
        ),
    ),
    "a forge that does not show yet what it has just merged": Script(
        seed=1011,
        config=Config(
            mode=Mode.PARALLEL, landing=LandingMethod.PROVIDER_MERGE, direct_merge_mode=DirectMergeMode.ALWAYS
        ),
        has_forge=True,
        acts=(
            Submit(at=2785, pr=4),
            Push(at=14577, pr=4),
            Upload(at=17502, pr=4, targets=("docs",)),
            FaultPeriod(at=47601, of=Family.STALE_READS, for_ms=60000),
        ),
    ),
    "a replica that takes over a merge without its commits": Script(
        seed=127,
        config=Config(landing=LandingMethod.PROVIDER_MERGE),
        replicas=3,
        statuses=("unit", "lint"),
        acts=(
            Upload(at=140, pr=1),
            Upload(at=566, pr=3, targets=("api",)),
            Submit(at=1850, pr=3),
            Submit(at=1882, pr=1, priority=200),
            FaultPeriod(at=3247, lag=500, of=Family.STALE_READS, for_ms=10000, percent=30),
            FaultPeriod(at=5267, during="landing", lag=100, of=Family.SLOWNESS, for_ms=30000, percent=5),
            Freeze(at=13230, lag=1000, for_ms=12000),
            Upload(at=15322, pr=4),
        ),
    ),
    "a direct merge whose run another replica builds": Script(
        seed=524,
        config=Config(batch=True, direct_merge_mode=DirectMergeMode.ALWAYS),
        replicas=2,
        has_forge=True,
        acts=(
            Upload(at=18242, pr=2, targets=("docs",)),
            Submit(at=19548, pr=2, priority=200),
            Submit(at=30648, pr=3, priority=10, forced=True),
        ),
    ),
    "a merge that is removed before its outcome is stored": Script(
        seed=187,
        config=Config(landing=LandingMethod.PROVIDER_MERGE),
        replicas=2,
        has_forge=True,
        acts=(
            Submit(at=5794, pr=2, forced=True),
            Submit(at=5943, pr=3, forced=True),
            FaultPeriod(at=10879, during="landing", lag=1000, of=Family.STORE, for_ms=30000),
            RewindTarget(at=51658, during="landing", lag=300),
        ),
    ),
    "a pull request that was forced and that its forge cannot merge": Script(
        seed=3130,
        config=Config(merge_method=MergeMethod.SQUASH, landing=LandingMethod.PROVIDER_MERGE),
        has_forge=True,
        nature=Nature(sharing=(2, 3), stacked_on=((3, 2),)),
        acts=(Submit(at=1735, pr=2, forced=True), Submit(at=13425, pr=3, forced=True)),
    ),
    "a pull request that was forced and that is merged by hand at the same time": Script(
        seed=411,
        config=Config(landing=LandingMethod.PROVIDER_MERGE),
        replicas=2,
        has_forge=True,
        requires_approval=True,
        acts=(
            Submit(at=3409, pr=2, no_batch=True, forced=True),
            FaultPeriod(at=7555, during="landing", lag=200, of=Family.LOST_NOTICES, for_ms=10000),
            FaultPeriod(at=10732, lag=500, of=Family.SLOWNESS, for_ms=30000, percent=5),
            FaultPeriod(at=34556, during="landing", lag=200, of=Family.REFUSALS, for_ms=30000),
            MergeByHand(at=50630, lag=200, pr=2),
            RewindTarget(at=57125, lag=100),
        ),
    ),
    "a pull request that was forced and whose base changes unseen during its merge": Script(
        seed=8891,
        families=frozenset({Family.STALE_READS}),
        config=Config(merge_method=MergeMethod.SQUASH, landing=LandingMethod.PROVIDER_MERGE),
        has_forge=True,
        requires_approval=True,
        acts=(
            Submit(at=4987, pr=3, forced=True),
            Kill(at=7458, during="landing", lag=500, replica=2, for_ms=30000),
            Kill(at=17998, during="landing", lag=100, replica=2, for_ms=3000),
            FaultPeriod(at=26398, lag=200, of=Family.STALE_READS, for_ms=30000),
            Retarget(at=41854, during="landing", lag=1000, pr=3),
        ),
    ),
    "a host that does not respond to the last task of a queue": Script(
        seed=7000098,
        config=Config(merge_method=MergeMethod.REBASE, delete_head_branches=True),
        nature=Nature(sharing=(1, 2, 4, 6)),
        heads=Heads(),
        acts=(
            Submit(at=7452, pr=6, priority=10),
            Push(at=14553, during="landing", lag=50, pr=6),
            FaultPeriod(at=16212, of=Family.SLOWNESS, for_ms=10000, percent=30),
            Submit(at=20698, pr=5),
            Upload(at=23300, pr=1, targets=("docs",)),
            Submit(at=23801, pr=1, no_batch=True),
            Submit(at=24229, pr=3, priority=10, forced=True),
            Submit(at=27180, pr=4, forced=True),
            Upload(at=28734, pr=2),
            Submit(at=29697, pr=2),
            FaultPeriod(at=36338, during="testing", lag=300, of=Family.SLOWNESS, for_ms=2000, percent=30),
            PullAndPush(at=38549, during="testing", lag=150, pr=5),
            FaultPeriod(at=39597, lag=200, of=Family.LOST_REPLIES, for_ms=10000, percent=20),
        ),
    ),
    "a pull request without changes, until the commit with the same changes is removed": Script(
        seed=4042,
        config=Config(merge_method=MergeMethod.REBASE),
        has_forge=True,
        nature=Nature(bad=(1,), stacked_on=((5, 4),)),
        acts=(
            Submit(at=7683, pr=1, no_batch=True, forced=True),
            RewindTarget(at=7796, during="landing", lag=1000),
            Submit(at=7835, pr=4, forced=True),
            Submit(at=12448, pr=5, priority=0, no_batch=True),
            RewindTarget(at=55006, lag=500),
        ),
    ),
    "a cancellation of a pull request whose landing is unknown": Script(
        seed=2679,
        replicas=2,
        has_forge=True,
        acts=(
            Kill(at=5253, during="landing", lag=200, replica=1, for_ms=3000),
            Submit(at=7752, pr=2, priority=0),
            Freeze(at=9747, during="building", for_ms=40000),
            Submit(at=10050, pr=3),
            RewindTarget(at=31854, during="landing"),
            Cancel(at=44434, pr=2),
        ),
    ),
    "stacked squashes that share a file": Script(
        seed=1187,
        config=Config(mode=Mode.PARALLEL, merge_method=MergeMethod.SQUASH),
        nature=Nature(sharing=(1, 2, 3, 4), stacked_on=((3, 2),)),
        acts=(Submit(at=9617, pr=2, priority=0, no_batch=True, forced=True), Submit(at=46012, pr=3)),
    ),
    "a push before the submission was stored": Script(
        seed=11,
        has_forge=True,
        nature=Nature(base_is_broken=True, repaired_by=9),
        acts=(
            FaultPeriod(at=1000, of=Family.SLOWNESS, for_ms=60000, percent=30),
            Submit(at=1100, pr=1, forced=True),
            Push(at=10671, pr=1),
        ),
    ),
    "a push before another replica stored the submission": Script(
        seed=1261,
        replicas=2,
        has_forge=True,
        nature=Nature(base_is_broken=True),
        acts=(
            Submit(at=500, pr=5),
            FaultPeriod(at=916, of=Family.SLOWNESS, for_ms=30000, percent=15),
            Submit(at=1100, pr=1),
            Push(at=3319, pr=1),
        ),
    ),
    "a pull request in the middle of a tested lane that lands before the rest of it": Script(
        seed=36548,
        config=Config(mode=Mode.PARALLEL, concurrency=3),
        replicas=2,
        has_forge=True,
        statuses=("unit", "lint"),
        acts=(
            Upload(at=2907, pr=7, targets=("api",)),
            Upload(at=10012, pr=1, targets=("docs",)),
            Upload(at=10346, pr=4, targets=("api",)),
            Submit(at=10454, pr=4),
            Submit(at=10949, pr=1, priority=10),
            JumpClock(at=11112, during="testing", by_ms=30000, for_ms=5000),
            Upload(at=11554, pr=6),
            Upload(at=11821, pr=5, targets=("ui", "docs")),
            Upload(at=12149, pr=2, targets=("ui",)),
            Submit(at=12372, pr=5, priority=200, forced=True),
            Submit(at=13043, pr=2, priority=0, no_batch=True),
        ),
    ),
    "a rebased landing that is lost with its disk": Script(
        seed=88903,
        config=Config(mode=Mode.PARALLEL),
        acts=(
            Restart(at=2499, during="building", lag=100, pr=2),
            Kill(at=6409, lag=1000, replica=1, for_ms=30000),
            Upload(at=7247, pr=5, targets=("api",)),
            Submit(at=8702, pr=5),
            Upload(at=10275, pr=2, targets=("ui", "docs")),
            Kill(at=10579, during="landing", lag=100, replica=2, for_ms=100, loses_its_disk=True),
            Upload(at=10777, pr=4),
            Submit(at=12263, pr=2, forced=True),
            Submit(at=12270, pr=4, priority=10),
            FaultPeriod(at=37564, lag=200, of=Family.ODD_CI, for_ms=2000),
        ),
    ),
    "a target branch that is rewound at the moment of a forge's merge": Script(
        seed=27126,
        config=Config(speculation=Speculation.BEST_FIRST, landing=LandingMethod.PROVIDER_MERGE),
        has_forge=True,
        nature=Nature(stacked_on=((5, 4),), base_is_broken=True, repaired_by=1),
        acts=(
            Submit(at=10733, pr=4, no_batch=True),
            Submit(at=11976, pr=5),
            Submit(at=25427, pr=1, priority=10),
            MergeByHand(at=38958, lag=200, pr=4),
            RewindTarget(at=41971, during="landing", lag=500),
        ),
    ),
    "a queue that is resumed before the response to the pause": Script(
        seed=6803,
        config=Config(batch=True, batching_max_wait_time_minutes=1),
        acts=(
            Upload(at=7097, pr=1),
            FaultPeriod(at=7422, lag=300, of=Family.SLOWNESS, for_ms=2000, percent=5),
            SetState(at=9805, during="landing", lag=300, state=QueueState.PAUSED),
            FaultPeriod(at=11929, of=Family.SLOWNESS, for_ms=30000, percent=5),
            FaultPeriod(at=14151, during="landing", lag=300, of=Family.SLOWNESS, for_ms=30000, percent=30),
            PushToTarget(at=20828, lag=300),
            Submit(at=44754, pr=1),
            RewindTarget(at=47601, during="landing", lag=1000),
            JumpClock(at=55402, during="landing", lag=100, by_ms=86_400_000, replica=1, for_ms=60000),
        ),
    ),
    "a clock that jumps by an hour during a test": Script(
        config=Config(testing_timeout_minutes=1),
        acts=(Submit(at=1000, pr=1), JumpClock(at=5000, by_ms=3_600_000, for_ms=60000)),
    ),
    "an approval that is withdrawn while no server is running and the merge is already decided": WITHDRAWN_WHILE_DOWN,
    "an approval that is withdrawn during an outage, and given again": Script(
        has_forge=True,
        requires_approval=True,
        hides_reviews=True,
        acts=(
            Approve(at=500, pr=1),
            Submit(at=1000, pr=1),
            FaultPeriod(at=1500, during="landing", lag=250, of=Family.REFUSALS, for_ms=40_000),
            Withdraw(at=1500, during="landing", lag=5000, pr=1),
            Approve(at=70_000, pr=1),
        ),
    ),
    "a replica without its disk that must move a rewritten head back": Script(
        seed=166,
        config=Config(batch=True, batching_max_wait_time_minutes=1, merge_method=MergeMethod.REBASE),
        has_forge=True,
        heads=Heads(moved_first=True),
        acts=(
            Upload(at=13284, pr=1),
            Submit(at=14882, pr=1, priority=10),
            Kill(at=44968, during="landing", lag=1000, replica=1, for_ms=30000, loses_its_disk=True),
            RewriteHead(at=48643, during="landing", lag=300, pr=1),
        ),
    ),
    "an approval that is withdrawn while the host still shows a head that was moved back": Script(
        seed=833,
        config=Config(merge_method=MergeMethod.REBASE),
        has_forge=True,
        requires_approval=True,
        heads=Heads(moved_first=True, shown_after_ms=5000),
        acts=(
            Approve(at=2391, pr=1),
            Approve(at=4849, pr=2),
            RestoreHead(at=5871, during="landing", lag=5300, pr=2),
            Approve(at=23631, pr=3),
            Submit(at=23879, pr=3, priority=10),
            Submit(at=23929, pr=2, no_batch=True),
            Withdraw(at=44275, during="landing", pr=3),
            Withdraw(at=46936, during="landing", lag=100, pr=2),
        ),
    ),
    "a replica that is stopped during a takeover": Script(
        replicas=2,
        acts=(Submit(at=1000, pr=1), Submit(at=1500, pr=2), Freeze(at=3000, for_ms=40000, during="landing")),
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_world_that_once_broke_a_promise_keeps_it(story: str):
    assert play_script(STORIES[story]).broken == ()


ONE_BY_ONE = Config(landing=LandingMethod.PROVIDER_MERGE)
CLAIMS_IN_A_LANDING = {
    "plain Git": Script(
        config=ONE_BY_ONE, acts=(Submit(at=1000, pr=1), PushForged(at=1500, during="landing", lag=100, pr=1))
    ),
    "a forge": Script(
        config=ONE_BY_ONE,
        has_forge=True,
        acts=(Submit(at=1000, pr=1), PushForged(at=1500, during="landing", lag=200, pr=1, run=0)),
    ),
}


@pytest.mark.parametrize("host", CLAIMS_IN_A_LANDING)
def test_a_commit_that_names_a_pull_request_of_a_landing_in_progress_is_not_taken_for_its_merge(host: str):
    """For example, a user cherry-picks a commit of the test branch."""
    assert play_script(CLAIMS_IN_A_LANDING[host]).broken == ()


@pytest.mark.parametrize("seed", range(40))
def test_script_is_printed_as_valid_code(seed: int):
    script = replace(draw(seed, with_heads=seed % 2 == 1), families=frozenset())
    names = {**vars(configs), **vars(scripts), "Family": Family, "QueueState": QueueState}
    assert eval(as_test(script), names) == script


WITHDRAWN = Script(
    has_forge=True,
    requires_approval=True,
    acts=(Approve(at=500, pr=1), Submit(at=1000, pr=1), Withdraw(at=1500, during="testing", pr=1)),
)


@pytest.mark.parametrize("hides_reviews", [False, True])
@pytest.mark.parametrize("landing", LandingMethod)
def test_an_approval_that_is_withdrawn_while_testing_stops_the_merge(landing: LandingMethod, hides_reviews: bool):
    played = play_script(replace(WITHDRAWN, config=Config(landing=landing), hides_reviews=hides_reviews))
    assert (played.broken, played.landings) == ((), 0)
    assert played.ends == {"not_ready (waiting_for_review)": 1}
    assert played.withdrawals == {"testing": 1}


@pytest.mark.parametrize("landing", LandingMethod)
def test_an_approval_that_is_given_again_lets_the_pull_request_merge(landing: LandingMethod):
    again = (*WITHDRAWN.acts, Approve(at=30_000, pr=1))
    played = play_script(replace(WITHDRAWN, config=Config(landing=landing), acts=again))
    assert (played.broken, played.ends) == ((), {"merged (merged_by_queue)": 1})


def test_a_pull_request_that_was_never_approved_does_not_merge_unless_it_is_forced():
    ignored = replace(WITHDRAWN, acts=(Submit(at=1000, pr=1), Submit(at=2000, pr=2, forced=True)))
    played = play_script(ignored)
    assert played.broken == ()
    assert played.ends == {"not_ready (waiting_for_review)": 1, "merged (merged_by_queue)": 1}


SLOW_HOST = Script(
    has_forge=True,
    requires_approval=True,
    hides_reviews=True,
    acts=(Approve(at=500, pr=1), Submit(at=1000, pr=1), Withdraw(at=1500, during="landing", lag=1000, pr=1)),
)


@pytest.mark.parametrize(
    ("landing", "method", "lag"),
    [
        (LandingMethod.TESTED_COMMIT, MergeMethod.MERGE_COMMIT, 0),
        (LandingMethod.PROVIDER_MERGE, MergeMethod.MERGE_COMMIT, 300),
        (LandingMethod.PROVIDER_MERGE, MergeMethod.SQUASH, 300),
    ],
)
def test_a_slow_git_host_does_not_make_an_old_read_count(landing: LandingMethod, method: MergeMethod, lag: int):
    slow = FaultPeriod(at=1500, during="landing", lag=lag, of=Family.SLOWNESS, for_ms=60_000, percent=60)
    config = Config(landing=landing, merge_method=method)
    script = replace(SLOW_HOST, config=config, acts=(*SLOW_HOST.acts, slow))
    assert [play_script(replace(script, seed=seed)).broken for seed in range(15)] == [()] * 15
