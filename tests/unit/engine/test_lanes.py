"""Whom a batch depends on, found by an index and compared with finding it pair by pair."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.line import Batch, Line
from mergeyard.domain.targets import ALL, NOTHING, Targets, named
from mergeyard.engine import lanes
from tests.support.builders import a_batch, a_config, a_plain_queue, a_pull, a_submission

Ahead = dict[BatchId, tuple[BatchId, ...]]

TARGETS = st.one_of(
    st.just(ALL), st.just(NOTHING), st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=3).map(Targets)
)
PARTS = st.lists(st.tuples(TARGETS, st.frozensets(st.integers(1, 12), max_size=1)), max_size=12)
"""What each batch impacts, and whose commits it contains."""

modestly = settings(deadline=None, max_examples=80, derandomize=True)


def batches_of(parts: list[tuple[Targets, frozenset[int]]]) -> list[Batch]:
    """Batch and ticket 1, 2, 3 and so on."""
    return [
        a_batch(number, targets=targets, behind=frozenset(map(Ticket, behind)) - {number})
        for number, (targets, behind) in enumerate(parts, 1)
    ]


def by_comparing_pairs(batches: list[Batch]) -> Ahead:
    ahead = Ahead()
    for at, batch in enumerate(batches):
        reached = set[BatchId]()
        for other in batches[:at]:
            if other.targets.share_with(batch.targets) or not batch.behind.isdisjoint(other.tickets):
                reached |= {other.id, *ahead[other.id]}
        ahead[batch.id] = tuple(other.id for other in batches[:at] if other.id in reached)
    return ahead


@modestly
@given(PARTS)
def test_a_batch_depends_on_all_ahead_that_share_with_it_and_on_whom_those_depend(
    parts: list[tuple[Targets, frozenset[int]]],
):
    batches = batches_of(parts)
    assert lanes.arrange(batches).ahead == by_comparing_pairs(batches)


@modestly
@given(PARTS, st.data())
def test_it_is_the_same_without_one_in_the_middle(parts: list[tuple[Targets, frozenset[int]]], data: st.DataObject):
    batches = batches_of(parts)
    gone = data.draw(st.sampled_from([*(batch.id for batch in batches), None]))
    rest = [batch for batch in batches if batch.id != gone]
    assert lanes.arrange(rest).ahead == by_comparing_pairs(rest)


@modestly
@given(PARTS, TARGETS, st.data())
def test_it_is_the_same_with_one_put_between(
    parts: list[tuple[Targets, frozenset[int]]], targets: Targets, data: st.DataObject
):
    batches = batches_of(parts)
    place = data.draw(st.integers(0, len(batches)))
    more = [*batches[:place], a_batch(99, targets=targets), *batches[place:]]
    assert lanes.arrange(more).ahead == by_comparing_pairs(more)


@modestly
@given(PARTS, PARTS, st.data())
def test_it_is_the_same_when_some_landed_and_others_joined(
    parts: list[tuple[Targets, frozenset[int]]], joining: list[tuple[Targets, frozenset[int]]], data: st.DataObject
):
    line = lanes.arrange(batches_of(parts))
    last = data.draw(st.sampled_from([*(batch.id for batch in line.batches), None]))
    landed = frozenset[BatchId]() if last is None else frozenset({last, *line.ahead[last]})
    line = lanes.without_landed(line, landed)
    for batch in batches_of([*parts, *joining])[len(parts) :]:
        line = lanes.append(line, batch)
    assert line.ahead == by_comparing_pairs(list(line.batches))


def test_claims_of_those_that_landed_are_forgotten_when_they_are_most_of_the_index():
    many = named(*(f"target{count}" for count in range(lanes.MANY_CLAIMS + 5)))
    line = lanes.arrange([a_batch(1, targets=many), a_batch(2, targets=named("a"))])
    after = lanes.without_landed(line, frozenset({BatchId(1)}))
    assert sum(map(len, after.index.segments)) == 1


def test_forgetting_claims_changes_nobodys_dependencies():
    many = named(*(f"target{count}" for count in range(lanes.MANY_CLAIMS + 5)))
    line = lanes.arrange([a_batch(1, targets=many), a_batch(2, targets=named("a")), a_batch(3, targets=named("a"))])
    assert lanes.without_landed(line, frozenset({BatchId(1)})).ahead == {2: (), 3: (2,)}


def test_one_that_impacts_everything_depends_on_all_ahead():
    batches = [a_batch(1, targets=named("a")), a_batch(2, targets=NOTHING), a_batch(3, targets=ALL)]
    assert lanes.arrange(batches).ahead[BatchId(3)] == (1, 2)


def test_one_that_impacts_nothing_depends_only_on_those_that_impact_everything():
    batches = [a_batch(1, targets=ALL), a_batch(2, targets=named("a")), a_batch(3, targets=NOTHING)]
    assert lanes.arrange(batches).ahead[BatchId(3)] == (1,)


def test_the_same_line_has_the_same_index_however_it_came_about():
    batches = [a_batch(1, targets=named("a")), a_batch(2, targets=named("b"))]
    assert lanes.append(lanes.append(Line(), batches[0]), batches[1]) == lanes.arrange(batches)


# Which targets count for a pull request.

PARALLEL = a_config(mode=Mode.PARALLEL)
FRONTEND = a_submission(1, targets=named("fe"))


def test_in_single_mode_everybody_impacts_everything():
    assert lanes.targets_of(a_plain_queue(), FRONTEND) == ALL


def test_in_parallel_mode_its_own_targets_count():
    assert lanes.targets_of(a_plain_queue(config=PARALLEL), FRONTEND) == named("fe")


def test_unknown_targets_may_be_any():
    assert lanes.targets_of(a_plain_queue(config=PARALLEL), a_submission(1, targets=None)) == ALL


def test_a_batch_impacts_what_its_members_impact():
    queue = a_plain_queue(FRONTEND, a_submission(2, targets=named("be")), config=PARALLEL)
    assert lanes.targets_of_all(queue, (Ticket(1), Ticket(2))) == named("fe", "be")


# Whose commits a pull request brings along.


def test_one_branched_from_another_that_is_here_stands_behind_it():
    queue = a_plain_queue(a_submission(1), a_submission(2, pull=a_pull(2, contains={1: "head1"})))
    assert lanes.contained_by(queue, (Ticket(2),)) == {1}


def test_one_branched_from_another_that_is_not_here_stands_behind_nobody():
    queue = a_plain_queue(a_submission(2, pull=a_pull(2, contains={1: "head1"})))
    assert lanes.contained_by(queue, (Ticket(2),)) == frozenset()


def test_those_in_the_same_batch_do_not_stand_behind_each_other():
    queue = a_plain_queue(a_submission(1), a_submission(2, pull=a_pull(2, contains={1: "head1"})))
    assert lanes.contained_by(queue, (Ticket(1), Ticket(2))) == frozenset()


def test_of_two_with_the_same_head_the_younger_stands_behind():
    one = a_submission(1, pull=a_pull(1, head="same", contains={2: "same"}))
    two = a_submission(2, pull=a_pull(2, head="same", contains={1: "same"}))
    queue = a_plain_queue(one, two)
    assert [lanes.contained_by(queue, (ticket,)) for ticket in (Ticket(1), Ticket(2))] == [frozenset(), {1}]


def test_one_branched_from_an_earlier_head_of_another_stands_behind_nobody():
    queue = a_plain_queue(a_submission(1), a_submission(2, pull=a_pull(2, contains={1: "an earlier head"})))
    assert lanes.contained_by(queue, (Ticket(2),)) == frozenset()
