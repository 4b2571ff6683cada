"""The picture of the line, drawn from answers of the server."""

from mergeyard.cli.demo.drawing import picture
from tests.support.demo import a_scene, a_stay


def test_an_empty_queue_is_only_its_branch():
    assert picture(a_scene()).plain == "main"


def test_those_of_one_run_stand_together_in_the_order_of_the_line():
    scene = a_scene(
        a_stay(1, "testing", testRunId="b", position=3),
        a_stay(2, "testing", testRunId="b", position=2),
        a_stay(3, "tests_passed", testRunId="a", position=1),
    )
    assert picture(scene).plain == "main ← 3✓ ← 2+1…"


def test_a_search_for_the_guilty_one_stands_beside_the_line():
    scene = a_scene(
        a_stay(1, "testing", testRunId="a", position=1),
        a_stay(2, "testing", testRunId="b", position=2),
        a_stay(3, "pending_failure", testRunId="c", position=3),
        bisections=frozenset({"b"}),
    )
    assert picture(scene).plain == "main ← 1… ⋔ 2…  3✗"


def test_those_who_wait_are_named_apart_and_those_who_are_done_are_gone():
    scene = a_scene(a_stay(1, "pending"), a_stay(2, "not_ready"), a_stay(3, "merged"), a_stay(4, "pending"))
    assert picture(scene).plain == "main   waiting: 1 4   not ready: 2"
