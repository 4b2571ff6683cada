"""Nobody is blamed upon a base that nobody has seen green, and nobody fails for a base that is red by itself."""

from mergeyard.domain.config import Mode
from tests.support.story import Story


def a_broken_base() -> Story:
    """1 went red on it, and so did the target itself."""
    story = Story.on_an_unseen_base()
    story.submit(1)
    story.tests_fail(1)
    story.tests_fail()
    return story


def test_a_green_run_needs_no_proven_base():
    story = Story.on_an_unseen_base()
    story.submit(1)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_what_landed_as_tested_is_proven():
    story = Story.on_an_unseen_base()
    story.submit(1, 2)
    story.tests_pass(1)
    story.tests_fail(2)
    assert story.state(2) == "failed"
    assert story.bare_runs() == 0


def test_a_run_beside_it_that_passed_on_the_same_base_proves_it():
    story = Story.on_an_unseen_base(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_pass(2)
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_no_bare_run_starts_while_another_run_may_prove_the_base():
    story = Story.on_an_unseen_base(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    assert (story.state(1), story.waiting(1), story.bare_runs()) == ("pending_failure", "waiting_for_base", 0)
    story.tests_pass(2)
    assert story.state(1) == "failed"


def test_a_bare_run_starts_when_nobody_else_can_prove_the_base():
    story = Story.on_an_unseen_base(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail(2)
    assert story.bare_runs() == 1
    story.tests_pass()
    assert story.states(1, 2) == ("failed", "failed")


def test_a_green_run_that_holds_the_accused_proves_nothing_against_it():
    story = Story.on_an_unseen_base(concurrency=3)
    story.submit(1, 2)
    story.tests_pass(2)
    story.tests_fail(1)
    assert story.picture() == "main ← 1✗ ← 2✓ ?"
    story.tests_fail()
    assert story.waiting(1) == "base_broken"
    assert story.picture() == "main ← 2…"


def test_a_bare_run_takes_a_slot_and_goes_before_everybody_else():
    story = Story.on_an_unseen_base(concurrency=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.picture() == "main ← 1✗ ?"
    assert story.waiting(2) == "waiting_for_slot"


def test_a_bare_run_is_run_again_like_any_other():
    story = Story.on_an_unseen_base(test_retries=1)
    story.submit(1)
    story.tests_fail(1)
    story.tests_fail(1)
    story.tests_fail()
    assert story.bare_runs() == 1
    story.tests_pass()
    assert story.state(1) == "failed"


def test_a_bare_run_stops_when_nobody_waits_for_it_any_more():
    story = Story.on_an_unseen_base()
    story.submit(1)
    story.tests_fail(1)
    story.cancel(1)
    assert story.bare_runs() == 0


def test_the_red_ones_step_aside_and_are_not_tested_again_on_this_tip():
    story = a_broken_base()
    assert (story.state(1), story.reason(1), story.waiting(1)) == ("pending", "base_broken", "base_broken")
    story.pass_hours(1)
    assert story.runs() == ()
    assert story.bare_runs() == 0


def test_the_others_are_tested_since_one_may_be_the_repair():
    story = Story.on_an_unseen_base()
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_fail()
    assert story.picture() == "main ← 2… ← 3…"
    story.tests_fail(2)
    assert story.picture() == "main ← 3…"
    assert story.waiting(2) == "base_broken"
    story.tests_pass(3)
    assert story.state(3) == "merged"


def test_after_the_repair_those_who_stepped_aside_are_tested_again_and_judged_fairly():
    story = a_broken_base()
    story.submit(2)
    story.tests_pass(2)
    assert story.picture() == "main ← 1…"
    story.tests_fail(1)
    assert (story.state(1), story.bare_runs()) == ("failed", 0)


def test_a_repair_from_outside_brings_back_those_who_stepped_aside():
    story = a_broken_base()
    story.foreign_push()
    assert story.picture() == "main ← 1…"


def test_a_push_that_repairs_nothing_blames_nobody_either():
    story = a_broken_base()
    story.foreign_push()
    story.tests_fail(1)
    assert story.bare_runs() == 1
    story.tests_fail()
    assert story.waiting(1) == "base_broken"


def test_a_red_one_behind_a_red_one_on_a_broken_base_is_tested_again_without_it():
    story = Story.on_an_unseen_base()
    story.submit(1, 2)
    story.tests_fail(2)
    story.tests_fail(1)
    story.tests_fail()
    assert story.states(1, 2) == ("pending", "testing")
    assert story.runs() == ((2,),)


def test_a_batch_of_several_is_not_searched_while_the_base_is_in_question():
    story = Story.on_an_unseen_base(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    assert story.picture() == "main ← 1+2✗ ?"
    assert story.probes() == ()
    story.tests_pass()
    assert story.picture() == "main ⋔ 1+2 : 1…"


def test_a_batch_of_several_steps_aside_as_a_whole():
    story = Story.on_an_unseen_base(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.tests_fail()
    assert (story.waiting(1), story.waiting(2)) == ("base_broken", "base_broken")
    story.foreign_push()
    assert story.picture() == "main ← 1+2…"


def test_a_foreign_push_is_not_proven_by_what_was_green_before_it():
    story = Story()
    story.submit(1)
    story.foreign_push()
    story.tests_fail(1)
    assert (story.state(1), story.bare_runs()) == ("pending_failure", 1)


def test_one_that_stepped_aside_can_still_be_cancelled():
    story = a_broken_base()
    assert story.cancel(1) is None
    assert story.state(1) == "cancelled"
