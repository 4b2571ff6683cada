"""Holds a server to its promises, by three logs: what the host's refs did, what it recorded, and what it answered.

Every promise is a function from the evidence to the ways in which it was broken. S1 and its like are the numbers under
which they are given.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from mergeyard.domain.ids import Sha
from tests.support.api import Answer
from tests.support.evidence import ENDED, Evidence, Landing, Stay
from tests.support.host_log import TEST_BRANCHES, Transaction
from tests.support.order import overtakings

LANDED = frozenset({"merged_by_queue", "merged_directly", "tree_mismatch"})


def broken_promises(evidence: Evidence) -> list[str]:
    return [f"{promise.__name__}: {words}" for promise in PROMISES for words in promise(evidence)]


def s1_what_was_tested_is_what_lands(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        if landing.run is None:
            yield from _direct_merge(evidence, landing)
        elif landing.run["status"] != "succeeded":
            yield f"{landing} landed with a run that {landing.run['status']}"
        elif not set(landing.run["requiredStatuses"]) <= evidence.passed(Sha(landing.run["testBranchSha"])):
            yield f"{landing} landed without having passed everything"
        elif landing.by_forge and evidence.is_told_as_mismatch(landing):
            continue
        elif not (evidence.landed_as_tested(landing) or evidence.is_composed(landing)):
            yield f"{landing} is neither what was tested nor composed of it"


def _direct_merge(evidence: Evidence, landing: Landing) -> Iterator[str]:
    merged = [stay for stay in evidence.stays.values() if stay["mergedSha"] == landing.new]
    if len(merged) != 1 or merged[0]["reason"]["code"] != "merged_directly":
        yield f"{landing} landed without a run"
        return
    head = Sha(merged[0]["prSha"])
    if evidence.tree(head) != evidence.tree(landing.new) or not evidence.holds(head, landing.old):
        yield f"{landing} is not the head that stood on the tip"
    if not evidence.required <= evidence.passed(head):
        yield f"{landing} landed directly without having passed everything"


def s2_the_target_moves_only_forward_and_from_where_it_was(evidence: Evidence) -> Iterator[str]:
    moves = [move for transaction in evidence.transactions if (move := transaction.of(evidence.target))]
    for before, move in pairwise(moves):
        if move.old is not None and move.old != before.new:
            yield f"{move} does not follow {before}"
    for landing in evidence.landings:
        if not evidence.holds(landing.new, landing.old):
            yield f"{landing} took something off the target"


def s3_nothing_is_undone_and_what_was_removed_stays_away(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        for path in evidence.changes_beyond(landing, evidence.stays_in(landing)):
            yield f"{landing} changed {path}, which none of its pull requests did"
    for transaction in evidence.transactions:
        move = transaction.of(evidence.target)
        removed = evidence.removed_by(move) if move and not transaction.by_service else set[Sha]()
        for landing in evidence.landings if removed else ():
            brought_back = landing.place > transaction.place and removed & evidence.brought_by(landing)
            if brought_back and not _merged_in_that_moment(evidence, landing, transaction):
                yield f"{landing} brought back what was taken off the target"
            for stay in _taken_off(evidence, removed) if landing.place > transaction.place else ():
                if evidence.brings_head_of(landing, stay):
                    yield f"{landing} brought back {evidence.name(stay['id'])}, which was taken off the target"


def _taken_off(evidence: Evidence, removed: set[Sha]) -> list[Stay]:
    return [stay for stay in evidence.stays.values() if stay.get("mergedSha") in removed]


def _merged_in_that_moment(evidence: Evidence, landing: Landing, removal: Transaction) -> bool:
    """A forge merges upon whatever its target is by then: the queue can only say so, and pause."""
    in_between = any(removal.place < other.place < landing.place for other in evidence.landings)
    return landing.by_forge and evidence.is_told_as_mismatch(landing) and not in_between


def s4_nothing_lands_twice(evidence: Evidence) -> Iterator[str]:
    landed = Counter(stay["id"] for landing in evidence.landings for stay in evidence.stays_in(landing))
    yield from (f"{evidence.name(stay)} landed {count} times" for stay, count in landed.items() if count > 1)


def s5_merged_means_landed_and_the_end_is_final(evidence: Evidence) -> Iterator[str]:
    landed = {stay["id"] for landing in evidence.landings for stay in evidence.stays_in(landing)}
    for stay in evidence.stays.values():
        name, by_us = evidence.name(stay["id"]), stay["state"] == "merged" and stay["reason"]["code"] in LANDED
        yield from _went_its_way_once(stay)
        if by_us and _was_merged_by_hand(evidence, stay):
            continue
        if by_us != (stay["id"] in landed):
            yield f"{name} is {stay['state']} and {'has' if stay['id'] in landed else 'has not'} landed"
        if by_us and not evidence.was_on_target(Sha(stay["mergedSha"])):
            yield f"{name} is said to be {stay['mergedSha']}, which never was on the target"
    ends = dict[str, tuple[int, str]]()
    for place, asked_after, told in evidence.told_stays():
        end, state = ends.get(told["id"], (place, told["state"]))
        if end < asked_after and told["state"] != state:
            yield f"{evidence.name(told['id'])} was {state} and then {told['state']}"
        if told["state"] in ENDED:
            ends.setdefault(told["id"], (place, told["state"]))


def _was_merged_by_hand(evidence: Evidence, stay: Stay) -> bool:
    """A head that merges directly, as it is, looks the same on the target whoever brought it there."""
    return stay["mergedSha"] == stay["prSha"] and evidence.was_brought_by_others(Sha(stay["prSha"]))


def _went_its_way_once(stay: Stay) -> Iterator[str]:
    moments = list(reversed(stay.get("timeline", ())))
    for before, moment in pairwise(moments):
        if before["to"] != moment["from"]:
            yield f"the timeline of #{stay['prNumber']} jumps from {before['to']} to {moment['from']}"
    if moments and moments[-1]["to"] != stay["state"]:
        yield f"#{stay['prNumber']} is {stay['state']}, and its timeline ends with {moments[-1]['to']}"


def s6_the_head_that_lands_is_the_head_that_was_submitted(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        for stay in evidence.stays_in(landing):
            if landing.run is not None and not evidence.brings_just(landing, stay):
                yield f"{landing} brought something else than {stay['prSha']} for {evidence.name(stay['id'])}"


def s7_cancelled_never_lands_and_paused_lands_nothing(evidence: Evidence) -> Iterator[str]:
    landed = {stay["id"]: landing.place for landing in evidence.landings for stay in evidence.stays_in(landing)}
    for answer in evidence.answers_to("cancelPullRequest"):
        if landed.get(answer.told["id"], -1) >= _end_of_landings(answer):
            yield f"{evidence.name(answer.told['id'])} was cancelled and landed"
    orders = [answer for answer in evidence.answers_to("updateQueue") if "state" in answer.body]
    for pause in (order for order in orders if order.body["state"] == "PAUSED"):
        end = _end_of_pause(evidence, pause, orders)
        for landing in evidence.landings:
            if pause.answered_at <= landing.place < end:
                yield f"{landing} landed while the queue was paused"


def _end_of_pause(evidence: Evidence, pause: Answer, orders: list[Answer]) -> float:
    """Whoever pauses is answered when nothing is being pushed any more: somebody else may have resumed it by then."""
    others = (order for order in orders if order.body["state"] != "PAUSED")
    return min((other.asked_at for other in others if not evidence.preceded(other, pause)), default=float("inf"))


def _end_of_landings(answer: Answer) -> int:
    """Who cancels one that had left already is only told so: how it left may be that nobody knows whether it landed."""
    return 0 if answer.told["reason"]["code"] == "cancelled_by_user" else answer.answered_at


def s8_whoever_was_ready_first_lands_first(evidence: Evidence) -> Iterator[str]:
    yield from overtakings(evidence)


def s9_what_was_answered_is_kept(evidence: Evidence) -> Iterator[str]:
    for answer in evidence.answers_to("submitPullRequest"):
        if answer.told["id"] not in evidence.stays:
            yield f"the submission of #{answer.told['prNumber']} is lost"
    for answer in evidence.answers_to("cancelPullRequest"):
        if evidence.stays[answer.told["id"]]["state"] != "cancelled":
            yield f"the cancellation of #{answer.told['prNumber']} is lost"
    for answer in evidence.answers_to("reportCommitStatus"):
        run = evidence.run_with_tip(Sha(answer.body["sha"]))
        if run is not None and answer.body["context"] not in {check["context"] for check in run["statusChecks"]}:
            yield f"the status {answer.body['context']} of {answer.body['sha']} is lost"


def s10_repeating_has_no_second_effect(evidence: Evidence) -> Iterator[str]:
    stays = Counter(stay["prNumber"] for stay in evidence.stays.values())
    for number, count in stays.items():
        if count > (asked := evidence.times_asked_to_submit(number)):
            yield f"#{number} was submitted {asked} times and has {count} stays"


def s14_only_the_target_and_test_branches_are_written(evidence: Evidence) -> Iterator[str]:
    targets = {evidence.target, *evidence.targets_beside}
    for transaction in evidence.transactions:
        for move in transaction.moves if transaction.by_service else ():
            if move.ref not in targets and not move.ref.startswith(TEST_BRANCHES):
                yield f"{move.ref} is not ours to write"


PROMISES = (
    s1_what_was_tested_is_what_lands,
    s2_the_target_moves_only_forward_and_from_where_it_was,
    s3_nothing_is_undone_and_what_was_removed_stays_away,
    s4_nothing_lands_twice,
    s5_merged_means_landed_and_the_end_is_final,
    s6_the_head_that_lands_is_the_head_that_was_submitted,
    s7_cancelled_never_lands_and_paused_lands_nothing,
    s8_whoever_was_ready_first_lands_first,
    s9_what_was_answered_is_kept,
    s10_repeating_has_no_second_effect,
    s14_only_the_target_and_test_branches_are_written,
)
