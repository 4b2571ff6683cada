"""What was last worked out is remembered while the parts that it depends on are the same."""

from collections.abc import Callable

from msgspec.structs import replace

from mergeyard.domain.queue import Queue
from mergeyard.engine.remembering import once_for_the_same
from tests.support.builders import a_plain_queue


def counting_runs() -> tuple[Callable[[Queue], int], list[Queue]]:
    asked = list[Queue]()

    @once_for_the_same("line", "runs")
    def count(queue: Queue) -> int:
        asked.append(queue)
        return len(queue.runs)

    return count, asked


def test_it_is_worked_out_once_for_the_same_parts():
    count, asked = counting_runs()
    queue = a_plain_queue()
    assert [count(queue), count(replace(queue, words="else"))] == [0, 0]
    assert asked == [queue]


def test_it_is_worked_out_anew_when_one_of_them_is_another():
    count, asked = counting_runs()
    queue = a_plain_queue()
    other = replace(queue, runs={})
    assert [count(queue), count(other)] == [0, 0]
    assert len(asked) == 2
