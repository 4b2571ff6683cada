"""Which batches a batch depends on, found by an index and compared with a search pair by pair."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, ImpactedTargets, impacted_targets_from_names
from mergeyard.domain.queue import ActiveBatches, Batch
from mergeyard.engine import lanes
from tests.support.builders import a_batch, a_config, a_plain_queue, a_pull_request, a_submission

Ahead = dict[BatchId, tuple[BatchId, ...]]

TARGETS = st.one_of(
    st.just(ALL_TARGETS),
    st.just(NO_TARGETS),
    st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=3).map(ImpactedTargets),
)
PARTS = st.lists(st.tuples(TARGETS, st.frozensets(st.integers(1, 12), max_size=1)), max_size=12)
"""What each batch impacts, and whose commits it contains."""

modestly = settings(deadline=None, max_examples=80, derandomize=True)


def batches_of(parts: list[tuple[ImpactedTargets, frozenset[int]]]) -> list[Batch]:
    """Batch and submission 1, 2, 3 and so on."""
    return [
        a_batch(number, impacted_targets=targets, prerequisites=frozenset(map(SubmissionId, behind)) - {number})
        for number, (targets, behind) in enumerate(parts, 1)
    ]


def by_comparing_pairs(batches: list[Batch]) -> Ahead:
    ahead = Ahead()
    for at, batch in enumerate(batches):
        reached = set[BatchId]()
        for other in batches[:at]:
            if other.impacted_targets.overlaps(batch.impacted_targets) or not batch.prerequisites.isdisjoint(
                other.submission_ids
            ):
                reached |= {other.id, *ahead[other.id]}
        ahead[batch.id] = tuple(other.id for other in batches[:at] if other.id in reached)
    return ahead


@modestly
@given(PARTS)
def test_a_batch_depends_on_all_ahead_that_share_a_target_and_on_what_those_depend_on(
    parts: list[tuple[ImpactedTargets, frozenset[int]]],
):
    batches = batches_of(parts)
    assert lanes.build_active(batches).ahead == by_comparing_pairs(batches)


@modestly
@given(PARTS, st.data())
def test_dependencies_are_the_same_without_a_batch_in_the_middle(
    parts: list[tuple[ImpactedTargets, frozenset[int]]], data: st.DataObject
):
    batches = batches_of(parts)
    gone = data.draw(st.sampled_from([*(batch.id for batch in batches), None]))
    rest = [batch for batch in batches if batch.id != gone]
    assert lanes.build_active(rest).ahead == by_comparing_pairs(rest)


@modestly
@given(PARTS, TARGETS, st.data())
def test_dependencies_are_the_same_with_a_batch_inserted(
    parts: list[tuple[ImpactedTargets, frozenset[int]]], targets: ImpactedTargets, data: st.DataObject
):
    batches = batches_of(parts)
    place = data.draw(st.integers(0, len(batches)))
    more = [*batches[:place], a_batch(99, impacted_targets=targets), *batches[place:]]
    assert lanes.build_active(more).ahead == by_comparing_pairs(more)


@modestly
@given(PARTS, PARTS, st.data())
def test_dependencies_are_the_same_when_some_landed_and_others_joined(
    parts: list[tuple[ImpactedTargets, frozenset[int]]],
    joining: list[tuple[ImpactedTargets, frozenset[int]]],
    data: st.DataObject,
):
    active = lanes.build_active(batches_of(parts))
    last = data.draw(st.sampled_from([*(batch.id for batch in active.batches), None]))
    landed = frozenset[BatchId]() if last is None else frozenset({last, *active.ahead[last]})
    active = lanes.remove_landed(active, landed)
    for batch in batches_of([*parts, *joining])[len(parts) :]:
        active = lanes.append_to_active(active, batch)
    assert active.ahead == by_comparing_pairs(list(active.batches))


def test_claims_of_landed_batches_are_dropped_when_they_are_most_of_the_index():
    many = impacted_targets_from_names(*(f"target{count}" for count in range(lanes.MIN_CLAIMS_BEFORE_REBUILD + 5)))
    active = lanes.build_active(
        [a_batch(1, impacted_targets=many), a_batch(2, impacted_targets=impacted_targets_from_names("a"))]
    )
    after = lanes.remove_landed(active, frozenset({BatchId(1)}))
    assert sum(map(len, after.index.segments)) == 1


def test_dropping_claims_changes_no_dependencies():
    many = impacted_targets_from_names(*(f"target{count}" for count in range(lanes.MIN_CLAIMS_BEFORE_REBUILD + 5)))
    active = lanes.build_active(
        [
            a_batch(1, impacted_targets=many),
            a_batch(2, impacted_targets=impacted_targets_from_names("a")),
            a_batch(3, impacted_targets=impacted_targets_from_names("a")),
        ]
    )
    assert lanes.remove_landed(active, frozenset({BatchId(1)})).ahead == {2: (), 3: (2,)}


def test_a_pr_that_impacts_everything_depends_on_all_ahead():
    batches = [
        a_batch(1, impacted_targets=impacted_targets_from_names("a")),
        a_batch(2, impacted_targets=NO_TARGETS),
        a_batch(3, impacted_targets=ALL_TARGETS),
    ]
    assert lanes.build_active(batches).ahead[BatchId(3)] == (1, 2)


def test_a_pr_that_impacts_nothing_depends_only_on_prs_that_impact_everything():
    batches = [
        a_batch(1, impacted_targets=ALL_TARGETS),
        a_batch(2, impacted_targets=impacted_targets_from_names("a")),
        a_batch(3, impacted_targets=NO_TARGETS),
    ]
    assert lanes.build_active(batches).ahead[BatchId(3)] == (1,)


def test_the_same_active_batches_have_the_same_index():
    batches = [
        a_batch(1, impacted_targets=impacted_targets_from_names("a")),
        a_batch(2, impacted_targets=impacted_targets_from_names("b")),
    ]
    assert lanes.append_to_active(
        lanes.append_to_active(ActiveBatches(), batches[0]), batches[1]
    ) == lanes.build_active(batches)


# Which targets count for a pull request.

PARALLEL = a_config(mode=Mode.PARALLEL)
FRONTEND = a_submission(1, impacted_targets=impacted_targets_from_names("fe"))


def test_in_single_mode_every_pr_impacts_everything():
    assert lanes.impacted_targets_of(a_plain_queue(), FRONTEND) == ALL_TARGETS


def test_in_parallel_mode_the_impacted_targets_of_the_pr_count():
    assert lanes.impacted_targets_of(a_plain_queue(config=PARALLEL), FRONTEND) == impacted_targets_from_names("fe")


def test_unknown_impacted_targets_count_as_all():
    assert (
        lanes.impacted_targets_of(a_plain_queue(config=PARALLEL), a_submission(1, impacted_targets=None)) == ALL_TARGETS
    )


def test_a_batch_impacts_what_its_members_impact():
    queue = a_plain_queue(
        FRONTEND, a_submission(2, impacted_targets=impacted_targets_from_names("be")), config=PARALLEL
    )
    assert lanes.union_of_impacted_targets(queue, (SubmissionId(1), SubmissionId(2))) == impacted_targets_from_names(
        "fe", "be"
    )


# Whose commits a pull request brings along.


def test_a_pr_branched_from_a_queued_pr_is_behind_it():
    queue = a_plain_queue(a_submission(1), a_submission(2, pull_request=a_pull_request(2, contains={1: "head1"})))
    assert lanes.contained_submission_ids(queue, (SubmissionId(2),)) == {1}


def test_a_pr_branched_from_a_pr_that_is_not_queued_is_behind_no_pr():
    queue = a_plain_queue(a_submission(2, pull_request=a_pull_request(2, contains={1: "head1"})))
    assert lanes.contained_submission_ids(queue, (SubmissionId(2),)) == frozenset()


def test_prs_in_the_same_batch_are_not_behind_each_other():
    queue = a_plain_queue(a_submission(1), a_submission(2, pull_request=a_pull_request(2, contains={1: "head1"})))
    assert lanes.contained_submission_ids(queue, (SubmissionId(1), SubmissionId(2))) == frozenset()


def test_of_two_prs_with_the_same_head_the_later_is_behind():
    one = a_submission(1, pull_request=a_pull_request(1, head="same", contains={2: "same"}))
    two = a_submission(2, pull_request=a_pull_request(2, head="same", contains={1: "same"}))
    queue = a_plain_queue(one, two)
    assert [
        lanes.contained_submission_ids(queue, (submission_id,)) for submission_id in (SubmissionId(1), SubmissionId(2))
    ] == [
        frozenset(),
        {1},
    ]


def test_a_pr_branched_from_an_earlier_head_of_another_is_behind_no_pr():
    queue = a_plain_queue(
        a_submission(1), a_submission(2, pull_request=a_pull_request(2, contains={1: "an earlier head"}))
    )
    assert lanes.contained_submission_ids(queue, (SubmissionId(2),)) == frozenset()
