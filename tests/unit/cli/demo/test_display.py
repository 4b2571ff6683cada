"""The diagram of the queue, rendered from responses of the server."""

from mergeyard.cli.demo.display import render_diagram
from tests.support.demo import a_progress, a_submission


def test_an_empty_queue_shows_only_its_branch():
    assert render_diagram(a_progress()).plain == "main"


def test_pull_requests_of_one_run_are_shown_together_in_queue_order():
    progress = a_progress(
        a_submission(1, "testing", testRunId="b", position=3),
        a_submission(2, "testing", testRunId="b", position=2),
        a_submission(3, "tests_passed", testRunId="a", position=1),
    )
    assert render_diagram(progress).plain == "main ← 3✓ ← 2+1…"


def test_a_bisection_is_shown_apart_from_the_active_batches():
    progress = a_progress(
        a_submission(1, "testing", testRunId="a", position=1),
        a_submission(2, "testing", testRunId="b", position=2),
        a_submission(3, "pending_failure", testRunId="c", position=3),
        bisections=frozenset({"b"}),
    )
    assert render_diagram(progress).plain == "main ← 1… ⋔ 2…  3✗"


def test_waiting_pull_requests_are_listed_apart_and_concluded_ones_are_left_out():
    progress = a_progress(
        a_submission(1, "pending"), a_submission(2, "not_ready"), a_submission(3, "merged"), a_submission(4, "pending")
    )
    assert render_diagram(progress).plain == "main   waiting: 1 4   not ready: 2"
