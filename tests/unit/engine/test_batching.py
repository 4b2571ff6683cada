"""Who goes into a batch together, and when it stops waiting for more."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import MINUTE
from mergeyard.domain.pulls import Submission
from mergeyard.domain.states import CheckState
from mergeyard.domain.targets import ALL, NOTHING, named
from mergeyard.engine import batching
from mergeyard.sim.world import START
from tests.support.builders import a_config, a_parallel_yard, a_plain_queue, a_submission, a_yard


def formed(*waiting: Submission, batch: int = 2) -> tuple[tuple[int, ...], ...]:
    """The batches that are to start now, of these in parallel mode."""
    queue = a_plain_queue(*waiting, config=a_config(mode=Mode.PARALLEL, batch=batch))
    return batching.form(queue, START).ready


# Size and time.


def test_without_batching_everybody_goes_alone():
    yard = a_yard(prs=3)
    assert yard.picture == "main ← 1… ← 2… ← 3…"


def test_a_full_batch_starts_at_once():
    yard = a_yard(prs=2, batch=2)
    assert yard.picture == "main ← 1+2…"


def test_a_batch_that_is_not_full_waits():
    yard = a_yard(prs=1, batch=2)
    assert yard.picture == "main"


def test_no_batch_is_larger_than_its_size():
    yard = a_yard(prs=5, batch=2)
    assert yard.picture == "main ← 1+2… ← 3+4…"


def test_a_batch_that_is_not_full_starts_when_its_oldest_waited_long_enough():
    yard = a_yard(prs=1, batch=3, batching_max_wait_time_minutes=5)
    yard.pass_time(4 * MINUTE)
    yard.submit(2)
    yard.pass_time(MINUTE)
    assert yard.picture == "main ← 1+2…"


def test_a_batch_that_is_not_full_does_not_start_before():
    yard = a_yard(prs=1, batch=3, batching_max_wait_time_minutes=5)
    yard.pass_time(5 * MINUTE - 1)
    assert yard.picture == "main"


def test_the_wait_begins_when_a_pr_is_admitted():
    yard = a_yard(batch=2, batching_max_wait_time_minutes=5)
    yard.open(1)
    yard.change(1, draft=True)
    yard.submit(1)
    yard.pass_time(5 * MINUTE)
    yard.change(1, draft=False)
    yard.tell(yard.pull_seen(1))
    assert yard.picture == "main"


def test_neighbours_of_the_order_go_together():
    yard = a_yard(batch=2, concurrency=1)
    yard.submit(1, 2)
    yard.submit(3)
    yard.submit(4, priority=50)
    yard.submit(5, priority=50)
    yard.build()
    yard.fails(1, 2)
    assert yard.picture == "main ← 4+5… ⋔ 1+2 : 1…"


def test_the_first_to_be_ripe_says_when_to_ask_again():
    yard = a_parallel_yard("x", batch=2, batching_max_wait_time_minutes=5)
    yard.pass_time(MINUTE)
    yard.submit(2, targets=named("y"))
    assert batching.form(yard.queue, yard.now).ripe_at == yard.now + 4 * MINUTE


# Alone.


def test_one_that_wants_no_batch_goes_alone():
    yard = a_yard(batch=2)
    yard.submit(1, no_batch=True)
    assert yard.picture == "main ← 1…"


def test_one_that_wants_no_batch_closes_the_one_before_it_which_then_starts():
    yard = a_yard(prs=1, batch=3)
    yard.submit(2, no_batch=True)
    assert yard.picture == "main ← 1… ← 2…"


def test_nobody_joins_one_that_wants_no_batch():
    yard = a_yard(batch=2)
    yard.submit(1, no_batch=True)
    yard.submit(2)
    assert yard.picture == "main ← 1…"


def test_one_that_wants_no_batch_closes_all_that_it_shares_with():
    yard = a_parallel_yard("x", "y", batch=2)
    yard.submit(3, targets=named("x", "y"), no_batch=True)
    assert yard.picture == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3…"


def test_all_that_are_closed_at_once_start_in_their_order():
    alone = replace(a_submission(3, targets=named("x", "y")), no_batch=True)
    assert formed(a_submission(1, targets=named("x")), a_submission(2, targets=named("y")), alone) == ((1,), (2,))


def test_one_that_wants_no_batch_leaves_alone_what_it_shares_nothing_with():
    alone = replace(a_submission(3, targets=named("y")), no_batch=True)
    assert formed(a_submission(1, targets=named("x")), a_submission(2, targets=named("y")), alone) == ((2,),)


# Once in a run.


def test_one_that_was_once_in_a_run_waits_for_no_batch_to_fill():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.fails(1)
    assert (yard.picture, yard.stay(2).was_in_run) == ("main ← 2…", True)


def test_newcomers_may_join_one_that_was_once_in_a_run():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.open(3)
    yard.tell(yard.submission(3), yard.verdict(CheckState.FAILED, 1))
    assert yard.picture == "main ← 2+3…"


def test_those_that_are_reunited_go_together_without_newcomers():
    yard = a_yard(prs=4, batch=4, concurrency=1)
    yard.submit(5, 6, 7, 8)
    yard.fails(1, 2, 3, 4)
    yard.build()
    yard.submit(9)
    yard.passes(1, 2)
    yard.fails(5, 6, 7, 8)
    yard.build()
    assert yard.picture == "main ← 1+2… ⋔ 3+4 : 1+2+3… ⋔ 5+6+7+8 : 5… 5+6… 5+6+7…"


def test_those_that_are_reunited_close_the_one_before_them():
    reunited = [replace(a_submission(number), reunion=(Ticket(2), Ticket(3))) for number in (2, 3)]
    assert formed(a_submission(1), *reunited, batch=3) == ((1,),)


def test_those_that_are_reunited_do_not_wait_for_a_batch_of_newcomers():
    yard = a_yard(prs=3, batch=3)
    yard.submit(9, no_batch=True)
    yard.build()
    yard.fails(1, 2, 3)
    yard.build()
    yard.submit(4, priority=50)
    yard.passes(1, 2)
    assert yard.picture == "main ← 9… ← 4… ← 1+2… ⋔ 3"


def test_those_that_are_reunited_keep_the_order_that_they_were_in():
    reunited = [replace(a_submission(number), reunion=(Ticket(2), Ticket(1))) for number in (1, 2)]
    assert formed(*reunited) == ((2, 1),)


def test_those_that_are_reunited_keep_their_order_when_age_would_change_it():
    yard = a_yard(prs=1, batch=3, batching_max_wait_time_minutes=10_080)
    yard.pass_time(59 * MINUTE)
    yard.submit(2, priority=95)
    yard.submit(3, priority=96)
    yard.submit(9, no_batch=True)
    yard.build()
    yard.pass_time(2 * MINUTE)
    yard.fails(2, 3, 1)
    yard.build()
    yard.cancel(3)
    assert yard.picture == "main ← 9… ← 2+1…"


# Lanes.


def test_in_parallel_mode_only_those_that_share_a_target_go_together():
    assert formed(a_submission(1, targets=named("x")), a_submission(2, targets=named("y"))) == ()


def test_in_parallel_mode_those_that_share_a_target_go_together():
    assert formed(a_submission(1, targets=named("x")), a_submission(2, targets=named("x", "y"))) == ((1, 2),)


def test_one_joins_a_batch_that_stands_further_back():
    waiting = [
        a_submission(1, targets=named("x")),
        a_submission(2, targets=named("y")),
        a_submission(3, targets=named("y")),
    ]
    assert formed(*waiting) == ((2, 3),)


def test_one_that_impacts_everything_joins_whoever_is_there():
    assert formed(a_submission(1, targets=named("x")), a_submission(2, targets=ALL)) == ((1, 2),)


def test_anybody_joins_one_that_impacts_everything():
    assert formed(a_submission(1, targets=ALL), a_submission(2, targets=NOTHING)) == ((1, 2),)


def test_those_that_impact_nothing_do_not_go_together():
    assert formed(a_submission(1, targets=NOTHING), a_submission(2, targets=NOTHING)) == ()


def test_one_that_depends_on_two_forming_batches_joins_neither():
    waiting = [
        a_submission(1, targets=named("x")),
        a_submission(2, targets=named("y")),
        a_submission(3, targets=named("x", "y")),
    ]
    assert formed(*waiting) == ()


def test_batches_never_wait_for_each_other_in_a_circle():
    """A[x] B[y] C[xy] D[xy]: never [A,C] with [B,D]."""
    yard = a_parallel_yard("x", "y", "xy", "xy", batch=2, batching_max_wait_time_minutes=5)
    yard.pass_time(5 * MINUTE)
    assert yard.picture == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3+4…"


def test_a_batch_that_depends_on_a_forming_one_lets_that_one_go_first():
    """3 and 4 are a full batch, but 3 depends on 1 and 2, who still wait for theirs to fill."""
    yard = a_parallel_yard("x", "y", "xy", "xy", batch=2, batching_max_wait_time_minutes=5)
    assert yard.picture == "main"


@pytest.mark.parametrize("behind", range(1, 4))
def test_only_neighbours_are_looked_through(behind: int):
    """The partner of the first stands within the next few batches' worth, or is no neighbour."""
    between = [a_submission(2 + at, targets=named(f"lane{at}")) for at in range(2 * behind)]
    first, partner = a_submission(1, targets=named("x")), a_submission(99, targets=named("x"))
    expected = ((1, 99),) if 2 + 2 * behind <= 2 * batching.NEIGHBOURS else ()
    assert formed(first, *between, partner) == expected
