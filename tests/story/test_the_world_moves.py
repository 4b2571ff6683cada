"""What others do meanwhile, in every phase of a stay: push, close, draft, retarget, merge by hand, move the target."""

from collections.abc import Callable

import pytest

from mergeyard.domain import tasks as t
from tests.support.story import Story

# Every phase that an admitted pull request can be in; 7 is the one that things happen to.


def waiting_for_a_slot() -> Story:
    story = Story(concurrency=1)
    story.submit(1, 7)
    return story


def waiting_for_a_batch() -> Story:
    story = Story(batch=4)
    story.submit(7)
    return story


def held_for_a_conflict() -> Story:
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(7, {"shared": "seven"})
    story.submit(1, 7)
    return story


def being_built() -> Story:
    story = Story()
    story.withhold(t.BuildRun)
    story.submit(7)
    return story


def under_test() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    return story


def under_test_in_a_batch() -> Story:
    story = Story(batch=3)
    story.submit(1, 7, 8)
    return story


def red_and_waiting() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    story.tests_fail(7)
    return story


def waiting_for_the_base() -> Story:
    story = Story.on_an_unseen_base()
    story.submit(7, 8)
    story.tests_fail(7)
    return story


def stepped_aside() -> Story:
    story = waiting_for_the_base()
    story.tests_fail()
    return story


def passed_behind_another() -> Story:
    story = Story()
    story.submit(1, 7, 8)
    story.tests_pass(7)
    return story


def about_to_land() -> Story:
    story = Story()
    story.withhold(t.ReadPulls)
    story.submit(7, 8)
    story.tests_pass(7)
    return story


def searched_in_a_bisection() -> Story:
    story = Story(batch=3)
    story.submit(1, 7, 8)
    story.tests_fail(1, 7, 8)
    return story


def the_suspect_of_a_bisection() -> Story:
    story = Story(batch=2)
    story.submit(1, 7, 8, 9)
    story.tests_fail(1, 7)
    story.tests_pass(1)
    return story


PHASES = [
    waiting_for_a_slot,
    waiting_for_a_batch,
    held_for_a_conflict,
    being_built,
    under_test,
    under_test_in_a_batch,
    red_and_waiting,
    waiting_for_the_base,
    stepped_aside,
    passed_behind_another,
    about_to_land,
    searched_in_a_bisection,
    the_suspect_of_a_bisection,
]


def phase_name(value: object) -> str | None:
    return getattr(value, "__name__", None)


in_every_phase = pytest.mark.parametrize("phase", PHASES, ids=phase_name)
in_every_phase_without_conflict = pytest.mark.parametrize(
    "phase", [phase for phase in PHASES if phase is not held_for_a_conflict], ids=phase_name
)


def check_that_the_others_end_well(story: Story) -> None:
    """Whatever 7 did, everybody else is tested and merges when all is green."""
    story.stop_withholding()
    story.pass_minutes(5)
    story.tests_pass_until_the_end()
    others = [number for number in (1, 8, 9) if number in story.world.host.pulls]
    assert sorted(set(story.merged()) - {7}) == others
    assert story.picture() == "main"


def point_elsewhere(story: Story, number: int) -> None:
    story.retarget(number, "release")


CHANGES: list[tuple[Callable[[Story, int], object], str]] = [
    (Story.push, "pr_pushed"),
    (Story.close, "pr_closed"),
    (Story.draft, "pr_converted_to_draft"),
    (point_elsewhere, "pr_base_changed"),
    (Story.cancel, "cancelled_by_user"),
]


@in_every_phase
@pytest.mark.parametrize(("change", "reason"), CHANGES, ids=[reason for _, reason in CHANGES])
def test_one_that_changes_is_cancelled_with_that_reason_and_the_others_go_on(
    phase: Callable[[], Story], change: Callable[[Story, int], object], reason: str
):
    story = phase()
    change(story, 7)
    assert (story.state(7), story.reason(7)) == ("cancelled", reason)
    check_that_the_others_end_well(story)
    assert 7 not in story.merged()


@in_every_phase_without_conflict
def test_one_that_somebody_merges_by_hand_is_merged_and_the_others_go_on(phase: Callable[[], Story]):
    story = phase()
    story.merge_by_hand(7)
    assert (story.state(7), story.reason(7)) == ("merged", "merged_manually")
    check_that_the_others_end_well(story)


@in_every_phase_without_conflict
def test_a_foreign_push_blames_nobody_and_everybody_still_merges(phase: Callable[[], Story]):
    story = phase()
    story.foreign_push()
    story.stop_withholding()
    assert story.state(7) not in {"failed", "cancelled"}
    check_that_the_others_end_well(story)
    assert story.state(7) == "merged"
    assert "elsewhere" in story.target_files()


def test_when_one_that_was_held_is_merged_by_hand_the_one_it_conflicts_with_fails():
    story = held_for_a_conflict()
    story.merge_by_hand(7)
    assert (story.state(7), story.reason(7)) == ("merged", "merged_manually")
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")


@in_every_phase
def test_a_pause_and_a_resume_change_nothing_that_was_decided(phase: Callable[[], Story]):
    story = phase()
    before = story.picture()
    story.pause()
    assert story.picture() == before
    story.resume()
    assert story.picture() == before


def test_a_push_under_test_tests_those_behind_again_without_it():
    story = under_test()
    story.push(7)
    assert story.picture() == "main ← 1… ← 8…"
    assert story.runs() == ((1,), (1, 8))


def test_one_that_was_pushed_to_can_be_submitted_again_with_its_new_head():
    story = under_test()
    story.push(7)
    story.submit(7)
    assert story.picture() == "main ← 1… ← 8… ← 7…"
    story.tests_pass_until_the_end()
    assert story.target_files()["file7"] == "pr7 again"


def test_submitting_again_after_a_push_that_nobody_heard_of_begins_a_new_stay():
    story = under_test()
    first = story.submission(7).ticket
    story.push_unheard(7)
    story.submit(7)
    assert story.submission(7).ticket != first
    assert "pr_pushed" in story.reasons(7)
    assert story.picture() == "main ← 1… ← 8… ← 7…"


def test_a_touch_that_changed_nothing_changes_nothing():
    story = under_test()
    runs = story.run_of(1).id, story.run_of(7).id, story.run_of(8).id
    story.touch(7)
    assert (story.run_of(1).id, story.run_of(7).id, story.run_of(8).id) == runs


def test_one_that_was_merged_into_another_branch_is_closed():
    story = under_test()
    story.change_unheard(7, is_open=False, merged_into="release")
    story.touch(7)
    assert (story.state(7), story.reason(7)) == ("cancelled", "pr_closed")


# The target.


def test_a_foreign_push_starts_every_run_again_and_nobody_is_blamed():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.foreign_push()
    assert story.picture() == "main ← 1… ← 2…"
    assert story.reasons(2)[-2:] == ("target_branch_moved", "test_run_started")
    assert story.run_of(1).base == story.tip()


def test_a_foreign_push_takes_back_what_had_passed():
    story = passed_behind_another()
    story.foreign_push()
    assert story.past(7)[-3:] == ("tests_passed", "pending", "testing")


def test_a_look_at_a_target_that_did_not_move_changes_nothing():
    story = Story()
    story.submit(1)
    run = story.run_of(1).id
    story.repository_requires("unit")
    assert story.run_of(1).id == run


def test_a_head_that_somebody_brought_into_the_target_with_another_push_is_merged():
    story = Story(concurrency=1)
    story.submit(1, 2)
    head = story.submission(2).pull.head
    files = story.world.repository.merged_files(story.tip(), head)
    story.world.repository.refs["main"] = story.world.repository.commit((story.tip(), head), files, "by hand")
    story.foreign_push({"more": "of it"})
    story.tests_pass_until_the_end()
    assert (story.state(2), story.reason(2)) == ("merged", "merged_manually")
    assert story.state(1) == "merged"


def test_one_that_changes_nothing_fails():
    story = Story()
    story.open(1, {"README": "hello"})
    story.submit(1)
    assert (story.state(1), story.reason(1)) == ("failed", "nothing_to_merge")


def test_one_whose_change_somebody_else_made_meanwhile_has_nothing_to_merge():
    story = Story()
    story.open(1, {"fix": "it"})
    story.submit(1, 2)
    story.foreign_push({"fix": "it"})
    assert (story.state(1), story.reason(1)) == ("failed", "nothing_to_merge")
    assert story.picture() == "main ← 2…"


def test_a_target_that_is_deleted_makes_everybody_wait_for_it():
    story = Story()
    story.submit(1)
    tip = story.tip()
    story.lose_target()
    assert (story.state(1), story.waiting(1)) == ("pending", "target_branch_missing")
    story.rewind(tip)
    assert story.state(1) == "testing"


# A rewound target.


def rewound_after(number: int) -> Story:
    story = Story()
    clean = story.tip()
    story.submit(number)
    story.tests_pass(number)
    story.open_from(story.tip(), 9)
    story.rewind(clean)
    return story


def test_what_was_removed_is_remembered_through_later_landings():
    story = rewound_after(1)
    story.submit(2)
    story.tests_pass(2)
    story.submit(9)
    assert (story.state(9), story.reason(9)) == ("failed", "contains_removed_commit")


def test_the_one_that_was_removed_fails_when_it_is_submitted_again():
    story = rewound_after(1)
    story.change_unheard(1, is_open=True, merged_into=None)
    story.submit(1)
    assert (story.state(1), story.reason(1)) == ("failed", "contains_removed_commit")


def test_a_rewind_starts_the_runs_again_and_fails_only_whoever_holds_what_was_removed():
    story = Story()
    clean = story.tip()
    story.submit(1)
    story.tests_pass(1)
    story.open_from(story.tip(), 2)
    story.open_from(clean, 3)
    story.submit(2, 3)
    story.rewind(clean)
    assert (story.state(2), story.reason(2)) == ("failed", "contains_removed_commit")
    assert story.picture() == "main ← 3…"


def test_what_somebody_puts_back_may_come_again():
    story = Story()
    clean = story.tip()
    story.submit(1)
    story.tests_pass(1)
    taken = story.tip()
    story.rewind(clean)
    story.rewind(taken)
    story.open_from(taken, 2)
    story.submit(2)
    story.tests_pass(2)
    assert story.state(2) == "merged"
