"""What became of a landing: the host's answer, never a guess."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.landing import Landing
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Step
from mergeyard.domain.states import CheckState, Mergeability, PrState, QueueState
from mergeyard.domain.targets import named
from mergeyard.engine.proving import BY_ITSELF
from tests.support.builders import Yard, a_parallel_yard, a_yard


def landing_of(yard: Yard) -> Landing:
    assert yard.queue.landing is not None
    return yard.queue.landing


def a_reading_yard(prs: int = 2) -> Yard:
    """All of these passed, and are to be read before they land."""
    yard = a_yard(prs=prs)
    yard.tell(*[yard.verdict(CheckState.PASSED, number) for number in range(1, prs + 1)])
    return yard


def an_intended_yard(prs: int = 1) -> Yard:
    yard = a_reading_yard(prs)
    yard.intend()
    return yard


def a_provider_yard(prs: int = 2, *, refusing: int) -> Yard:
    """The provider merges one by one, and refuses this one."""
    yard = a_yard(prs=prs, landing=LandingMethod.PROVIDER_MERGE)
    yard.host.refusing.add(PrNumber(refusing))
    yard.tell(*[yard.verdict(CheckState.PASSED, number) for number in range(1, prs + 1)])
    yard.intend()
    yard.perform(t.Land)
    return yard


def a_composing_yard(*, clash: bool = False) -> Yard:
    """1 landed, and 2 of another lane has to be composed with it; both change the same file if they clash."""
    yard = a_parallel_yard()
    for number, lane in (1, "x"), (2, "y"):
        yard.open(number, {"shared": "same"} if clash else None)
        yard.tell(yard.submission(number, targets=named(lane)))
    yard.build()
    yard.passes(1)
    yard.perform_all()
    yard.passes(2)
    return yard


def with_other_trees(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, tree=Sha("another tree")) for step in steps)


# Read.


def test_whoever_was_closed_meanwhile_leaves():
    yard = a_reading_yard()
    yard.change(2, is_open=False)
    yard.perform(t.ReadPulls)
    assert (yard.reason(2), [member.number for member in landing_of(yard).members]) == (Reason.PR_CLOSED, [1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"base": "elsewhere"}, Reason.PR_BASE_CHANGED), ({"draft": True}, Reason.PR_CONVERTED_TO_DRAFT)],
)
def test_whoever_changed_meanwhile_leaves(change: dict[str, object], reason: Reason):
    yard = a_reading_yard(1)
    yard.change(1, **change)
    yard.perform(t.ReadPulls)
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, reason)


def test_whoever_is_no_longer_mergeable_is_not_ready():
    yard = a_reading_yard()
    yard.change(2, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform(t.ReadPulls)
    assert (yard.state(2), yard.reason(2)) == (PrState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_the_others_land_without_the_one_that_is_no_longer_mergeable():
    yard = a_reading_yard()
    yard.change(2, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED


def test_whoever_was_forced_lands_also_when_not_mergeable():
    yard = a_yard()
    yard.submit(1, forced=True)
    yard.build()
    yard.passes(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED


def test_while_the_host_does_not_say_whether_one_is_mergeable_nothing_lands():
    yard = a_reading_yard(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.perform(t.ReadPulls)
    assert (landing_of(yard).intended, yard.state(1)) == (False, PrState.TESTS_PASSED)


def test_a_reading_of_others_is_not_believed():
    yard = a_reading_yard()
    pulls = (yard.host.look(PrNumber(1)),)
    yard.tell(e.LandingRead(landing=landing_of(yard).number, pulls=pulls, as_of=yard.queue.counters.turns))
    assert not landing_of(yard).intended


def test_a_reading_that_began_before_the_last_look_was_recorded_is_not_believed():
    yard = a_reading_yard(1)
    (read,) = yard.outstanding(t.ReadPulls)
    outdated = yard.host.perform(read, yard.queue.counters.turns)
    yard.change(1, title="another title")
    yard.tell(yard.pull_seen(1))
    yard.tell(outdated)
    assert not landing_of(yard).intended


def test_whoever_left_in_the_same_turn_does_not_land():
    yard = a_reading_yard()
    (read,) = yard.outstanding(t.ReadPulls)
    seen = yard.host.perform(read, yard.queue.counters.turns)
    yard.tell(e.CancelRequested(number=PrNumber(2)), seen)
    assert (yard.state(2), [member.number for member in landing_of(yard).members]) == (PrState.CANCELLED, [1])


def test_one_that_is_no_longer_mergeable_may_be_read_twice_in_one_turn():
    yard = a_reading_yard(1)
    yard.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    yard.tell(yard.pull_seen(1))
    (read,) = yard.outstanding(t.ReadPulls)
    seen = yard.host.perform(read, yard.queue.counters.turns)
    yard.tell(seen, seen)
    assert (yard.state(1), yard.reason(1)) == (PrState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_a_second_reading_changes_nothing():
    yard = a_reading_yard(1)
    (read,) = yard.outstanding(t.ReadPulls)
    seen = yard.host.perform(read, yard.queue.counters.turns)
    yard.tell(seen)
    before = yard.queue
    yard.tell(seen)
    assert yard.queue is before


# Composed.


def test_a_composed_landing_is_read_next():
    yard = a_composing_yard()
    yard.perform(t.ComposeLanding)
    assert yard.outstanding(t.ReadPulls) == (t.ReadPulls(landing=landing_of(yard).number, numbers=(PrNumber(2),)),)


def test_a_second_composition_changes_nothing():
    yard = a_composing_yard()
    (compose,) = yard.outstanding(t.ComposeLanding)
    composed = yard.host.perform(compose, 0)
    yard.tell(composed)
    before = yard.queue
    yard.tell(composed)
    assert yard.queue is before


def test_if_somebody_changed_the_same_paths_it_is_tested_again_on_the_new_tip():
    yard = a_composing_yard(clash=True)
    yard.perform(t.ComposeLanding)
    assert (yard.reason(2), yard.queue.landing, yard.run_of(2).base) == (
        *(Reason.TARGET_BRANCH_MOVED, None),
        yard.host.tip,
    )


def test_a_refused_composition_of_a_landing_that_is_composed_is_not_believed():
    yard = a_composing_yard()
    yard.perform(t.ComposeLanding)
    before = yard.queue
    yard.tell(e.CompositionRefused(landing=landing_of(yard).number))
    assert yard.queue is before


def test_a_composed_landing_proves_nothing_about_the_new_tip():
    yard = a_composing_yard()
    yard.perform_all()
    assert (yard.state(2), yard.queue.target.proofs.get(yard.host.tip)) == (PrState.MERGED, None)


# Succeeded.


def test_those_that_landed_are_merged():
    yard = an_intended_yard(2)
    yard.perform(t.Land)
    assert [(yard.state(number), yard.reason(number)) for number in (1, 2)] == [
        (PrState.MERGED, Reason.MERGED_BY_QUEUE)
    ] * 2


def test_those_that_landed_know_as_which_commit_and_by_which_run():
    yard = an_intended_yard(2)
    run = yard.run_of(2)
    yard.perform(t.Land)
    assert [(yard.stay(number).merged_sha, yard.stay(number).verified_by) for number in (1, 2)] == [
        (step.commit, run.id) for step in run.chain
    ]


def test_only_what_was_put_on_a_tip_that_had_moved_is_called_composed():
    yard = a_composing_yard()
    yard.perform_all()
    assert [yard.stay(number).composed for number in (1, 2)] == [False, True]


def test_the_target_is_where_it_landed():
    yard = an_intended_yard()
    yard.perform(t.Land)
    assert (yard.queue.target.tip, yard.queue.landing) == (yard.host.tip, None)


def test_the_history_tells_what_landed_since():
    yard = a_yard(prs=3)
    ticket, run = yard.ticket(1), yard.run_of(1)
    yard.passes(1)
    yard.perform_all()
    landed = yard.queue.target.history[-1]
    assert (landed.commit, landed.tree, landed.ticket) == (run.tip, run.chain[-1].tree, ticket)


def test_what_landed_as_tested_is_a_proven_base():
    yard = an_intended_yard()
    yard.perform(t.Land)
    assert yard.queue.target.proofs[yard.host.tip] == (BY_ITSELF,)


def test_a_landing_that_was_withdrawn_has_its_run_repeated():
    yard = an_intended_yard()
    before = yard.run_of(1).id
    yard.tell(e.LandingMissed(landing=landing_of(yard).number, withdrawn=True))
    assert yard.run_of(1).id != before


@pytest.mark.parametrize("kind", [e.LandingSucceeded, e.LandingMissed, e.LandingRefused, e.LandingLost])
def test_without_an_intent_nothing_can_have_landed(kind: type[e.Event]):
    yard = a_reading_yard()
    number, steps = landing_of(yard).number, landing_of(yard).steps
    outcomes: dict[type[e.Event], e.Event] = {
        e.LandingSucceeded: e.LandingSucceeded(landing=number, steps=steps),
        e.LandingMissed: e.LandingMissed(landing=number),
        e.LandingRefused: e.LandingRefused(landing=number, words="no"),
        e.LandingLost: e.LandingLost(landing=number),
    }
    before = yard.queue
    yard.tell(outcomes[kind])
    assert yard.queue is before


def test_what_does_not_hold_what_was_tested_is_merged_and_says_so():
    yard = an_intended_yard()
    landing = landing_of(yard)
    yard.tell(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    assert (yard.state(1), yard.reason(1)) == (PrState.MERGED, Reason.TREE_MISMATCH)


def test_what_does_not_hold_what_was_tested_pauses_the_queue():
    yard = an_intended_yard()
    landing = landing_of(yard)
    decision = yard.tell(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    told = [entry.reason for entry in decision.journal if isinstance(entry, QueueChanged)]
    assert (yard.queue.state, told) == (QueueState.PAUSED, [Reason.TREE_MISMATCH])


def test_what_does_not_hold_what_was_tested_proves_nothing():
    yard = an_intended_yard()
    landing = landing_of(yard)
    yard.tell(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    assert yard.queue.target.tip not in yard.queue.target.proofs


def test_whoever_was_tested_beneath_what_does_not_hold_what_was_tested_is_tested_again():
    yard = a_parallel_yard("x", "x", landing=LandingMethod.PROVIDER_MERGE)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 2))
    yard.intend()
    landing = landing_of(yard)
    yard.tell(e.LandingMissed(landing=landing.number, steps=with_other_trees(landing.steps[:1])))
    assert (yard.state(1), yard.reason(1)) == (PrState.MERGED, Reason.TREE_MISMATCH)
    assert (yard.state(2), yard.reason(2)) == (PrState.PENDING, Reason.TARGET_BRANCH_MOVED)


def test_when_the_tip_was_taken_off_beneath_a_merge_a_look_tells_what_was_removed():
    yard = an_intended_yard()
    landing, known = landing_of(yard), yard.queue.target.tip
    elsewhere = tuple(replace(step, parent=Sha("elsewhere")) for step in landing.steps)
    yard.tell(e.LandingSucceeded(landing=landing.number, steps=elsewhere))
    assert (yard.reason(1), yard.queue.state) == (Reason.TREE_MISMATCH, QueueState.PAUSED)
    assert yard.outstanding(t.LookAtTarget) == (t.LookAtTarget(known_tip=known, removed=frozenset()),)


def test_when_a_merge_was_taken_off_beneath_the_next_a_look_tells_what_was_removed():
    yard = a_yard(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 2))
    yard.intend()
    landing = landing_of(yard)
    first, second = landing.steps
    yard.tell(e.LandingSucceeded(landing=landing.number, steps=(first, replace(second, parent=first.parent))))
    assert (yard.reason(2), yard.queue.state) == (Reason.TREE_MISMATCH, QueueState.PAUSED)
    assert yard.outstanding(t.LookAtTarget) == (t.LookAtTarget(known_tip=first.commit, removed=frozenset()),)


# Missed.


def test_a_landing_that_missed_leaves_everybody_as_they_were():
    yard = an_intended_yard()
    yard.tell(e.LandingMissed(landing=landing_of(yard).number))
    assert (yard.state(1), yard.queue.landing) == (PrState.TESTS_PASSED, None)


def test_after_a_landing_that_missed_the_target_is_looked_at():
    yard = an_intended_yard()
    yard.tell(e.LandingMissed(landing=landing_of(yard).number))
    assert yard.queue.target.look


def test_a_landing_that_missed_a_foreign_push_is_tested_again_upon_it():
    yard = an_intended_yard()
    yard.push_to_target({"other": "other"})
    yard.perform(t.Land)
    yard.perform(t.LookAtTarget)
    assert (yard.reason(1), yard.run_of(1).base) == (Reason.TARGET_BRANCH_MOVED, yard.host.tip)


def test_what_had_landed_before_it_missed_is_merged():
    yard = a_yard(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.PASSED, 2))
    yard.intend()
    landing = landing_of(yard)
    yard.tell(e.LandingMissed(landing=landing.number, steps=landing.steps[:1]))
    assert (yard.state(1), yard.state(2)) == (PrState.MERGED, PrState.TESTS_PASSED)


# Refused.


def test_a_refused_landing_pauses_the_queue_with_the_hosts_words():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="protected branch"))
    assert (yard.queue.state, yard.queue.words) == (QueueState.PAUSED, "protected branch")


def test_a_refused_landing_fails_nobody():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="protected branch"))
    assert (yard.state(1), yard.queue.landing) == (PrState.TESTS_PASSED, None)


def test_a_refused_landing_is_tried_again_when_the_queue_is_resumed():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="protected branch"))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.perform_all()
    assert yard.state(1) is PrState.MERGED


def test_a_resumed_queue_has_no_words_any_more():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="protected branch"))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.queue.words == ""


def test_a_landing_refused_in_a_paused_queue_leaves_its_words():
    yard = an_intended_yard()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    decision = yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="protected branch"))
    assert (yard.queue.words, [entry.reason for entry in decision.journal]) == (
        "protected branch",
        [Reason.LANDING_REFUSED],
    )


def test_a_pr_that_the_host_names_fails_with_its_words():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="not you", ticket=yard.ticket(1)))
    assert (yard.state(1), yard.reason(1), yard.stay(1).words) == (PrState.FAILED, Reason.MERGE_REFUSED, "not you")


def test_a_refusal_that_names_a_pr_does_not_pause_the_queue():
    yard = an_intended_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="not you", ticket=yard.ticket(1)))
    assert yard.queue.state is QueueState.RUNNING


# The provider's merge.


def test_a_provider_merges_one_by_one():
    yard = a_provider_yard(refusing=99)
    assert [(yard.state(number), yard.reason(number)) for number in (1, 2)] == [
        (PrState.MERGED, Reason.MERGED_BY_QUEUE)
    ] * 2


def test_a_refusal_at_the_second_keeps_the_first():
    yard = a_provider_yard(refusing=2)
    assert (yard.state(1), yard.state(2), yard.reason(2)) == (
        *(PrState.MERGED, PrState.FAILED),
        Reason.MERGE_REFUSED,
    )


def test_those_behind_the_refused_one_are_tested_again():
    yard = a_provider_yard(3, refusing=2)
    assert (yard.picture, yard.state(3)) == ("main ← 3…", PrState.PENDING)


def test_the_rest_of_a_batch_that_the_provider_merged_in_part_is_tested_again():
    yard = a_yard(prs=3, batch=3, landing=LandingMethod.PROVIDER_MERGE)
    yard.host.refusing.add(PrNumber(2))
    yard.passes(1, 2, 3)
    yard.intend()
    yard.perform(t.Land)
    assert ([yard.state(number) for number in (1, 2, 3)], yard.picture) == (
        [PrState.MERGED, PrState.FAILED, PrState.PENDING],
        "main ← 3…",
    )


def test_what_landed_of_a_batch_in_part_is_no_proven_base():
    yard = a_yard(prs=2, batch=2, landing=LandingMethod.PROVIDER_MERGE)
    yard.host.refusing.add(PrNumber(2))
    yard.passes(1, 2)
    yard.intend()
    yard.perform(t.Land)
    assert yard.host.tip not in yard.queue.target.proofs


# Lost.


def test_when_nobody_knows_what_happened_its_prs_are_cancelled():
    yard = an_intended_yard(2)
    yard.tell(e.LandingLost(landing=landing_of(yard).number))
    assert [(yard.state(number), yard.reason(number)) for number in (1, 2)] == [
        (PrState.CANCELLED, Reason.LANDING_UNKNOWN)
    ] * 2


def test_when_nobody_knows_what_happened_the_target_is_looked_at():
    yard = an_intended_yard()
    yard.tell(e.LandingLost(landing=landing_of(yard).number))
    assert (yard.queue.target.look, yard.queue.landing) == (True, None)


def test_a_landing_whose_test_branch_is_gone_is_not_pushed_again():
    yard = an_intended_yard()
    yard.repository.refs.pop(yard.run_of(1).id)
    yard.perform(t.Land)
    assert (yard.reason(1), yard.host.tip) == (Reason.LANDING_UNKNOWN, yard.repository.root)


# Without a run.


def a_direct_yard() -> Yard:
    yard = a_yard(direct_merge_mode=DirectMergeMode.ALWAYS)
    yard.open(1)
    yard.checks.report(yard.head(1), ("unit",))
    yard.submit(1)
    yard.perform(t.ExamineHead)
    yard.intend()
    return yard


def test_one_that_landed_without_a_run_is_merged_directly():
    yard = a_direct_yard()
    yard.perform(t.Land)
    assert (yard.state(1), yard.reason(1), yard.stay(1).verified_by) == (
        *(PrState.MERGED, Reason.MERGED_DIRECTLY),
        None,
    )


def test_one_that_the_host_refuses_without_a_run_takes_the_way_that_everybody_takes():
    yard = a_direct_yard()
    yard.tell(e.LandingRefused(landing=landing_of(yard).number, words="no", ticket=yard.ticket(1)))
    assert (yard.state(1), yard.picture) == (PrState.PENDING, "main ← 1…")


def test_news_of_one_that_lands_without_a_run_waits():
    yard = a_direct_yard()
    yard.submit(2, priority=0)
    yard.build()
    yard.perform(t.Land)
    assert yard.state(1) is PrState.MERGED
