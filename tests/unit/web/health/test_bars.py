"""Reasons as bars."""

from mergeyard.service.history.reasons import Why
from mergeyard.web.health import bars


def test_what_kept_most_from_merging_is_the_finding():
    shown = bars.conclusions(
        [Why("merged", "merged_by_queue", 20), Why("failed", "test_run_failed", 5), Why("cancelled", "pr_closed", 1)]
    )
    assert shown.finding == "5 of 6 that did not merge: test run failed"
    assert [bar.percent for bar in shown.bars] == [100, 25, 5]
    assert [bar.label for bar in shown.bars][1] == "failed: test run failed"
    assert shown.bars[1].sentence.startswith("A required status failed")


def test_when_all_merged_that_is_the_finding():
    assert bars.conclusions([Why("merged", "merged_by_queue", 2)]).finding == "Everything that left the queue merged"


def test_when_nothing_left_that_is_the_finding():
    assert bars.conclusions([]) == bars.Bars(
        "Nothing left the queue", "Pull requests that left the queue, by state and reason", ()
    )


def test_restarts_are_named_by_their_reason_alone():
    shown = bars.restarts([Why("pending", "bisection", 3), Why("pending", "target_branch_moved", 1)])
    assert shown.finding == "3 of 4 restarts: bisection"
    assert [bar.label for bar in shown.bars] == ["bisection", "target branch moved"]
    assert bars.restarts([]).finding == "No test was given up"


def test_a_reason_that_there_is_no_more_has_no_sentence():
    (bar,) = bars.conclusions([Why("failed", "out_of_steam", 1)]).bars
    assert (bar.label, bar.sentence) == ("failed: out of steam", "")
