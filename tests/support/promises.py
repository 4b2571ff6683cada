"""Checks a server's promises with three logs: updates of the Git host's refs, the server's records, its API responses.

Each promise is a function from the evidence to its violations. S1 and so on are the numbers in
`docs/understand/promises.md`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiResponse
from tests.support.evidence import ENDED, Evidence, Landing, SubmissionJson
from tests.support.host_log import TEST_BRANCH_PREFIX, RefUpdate, Transaction

UNDISTURBED_REASONS = frozenset(
    {"submitted", "ready", "test_run_started", "test_run_passed", "successor_passed", "merged_by_queue"}
)


class LandedSubmission(Struct, frozen=True):
    submission: SubmissionJson
    submitted_at: str
    ready_at: str
    position: tuple[int, int]
    impacted_targets: frozenset[str]

    def must_land_before(self, other: "LandedSubmission") -> bool:
        same_options = all(
            self.submission[name] == other.submission[name] for name in ("priorityValue", "skipTheLine", "noBatch")
        )
        return same_options and self.ready_at < other.submitted_at and self.shares_lane(other)

    def shares_lane(self, other: "LandedSubmission") -> bool:
        return (
            not self.impacted_targets
            or not other.impacted_targets
            or not self.impacted_targets.isdisjoint(other.impacted_targets)
        )


def find_overtakings(evidence: Evidence) -> Iterator[str]:
    """Goes in landing order, so that few pairs are compared: those submitted after a waiting one was ready."""
    if not evidence.clocks_agree:
        return
    landed = sorted(_landed_submissions(evidence), key=lambda each: each.position)
    last_submitted = ""
    for index, earlier in enumerate(landed):
        for later in landed[:index] if earlier.ready_at < last_submitted else ():
            if (
                earlier.must_land_before(later)
                and later.position < earlier.position
                and not _is_stacked_on_another(evidence, earlier)
            ):
                yield f"{evidence.name(later.submission['id'])} overtook {evidence.name(earlier.submission['id'])}"
        last_submitted = max(last_submitted, earlier.submitted_at)


def _is_stacked_on_another(evidence: Evidence, landed: LandedSubmission) -> bool:
    """Whether it contains the commits of another one and had to wait until that one ended."""
    head = Sha(landed.submission["prSha"])
    return any(
        other["id"] != landed.submission["id"]
        and evidence.contains(head, Sha(other["prSha"]))
        and landed.ready_at < _ended_at(other)
        for other in evidence.submissions.values()
    )


def _ended_at(submission: SubmissionJson) -> str:
    return max(moment["at"] for moment in submission["timeline"])


def _landed_submissions(evidence: Evidence) -> list[LandedSubmission]:
    landings = {each["id"]: landing for landing in evidence.landings for each in evidence.submissions_in(landing)}
    paths = {
        name: evidence.paths_changed_by(submission, onto=landings[name].old if name in landings else evidence.tip)
        for name, submission in evidence.submissions.items()
    }
    touched = Counter(path for changed in paths.values() for path in changed)
    observed = {(each["id"], each["priorityValue"]) for *_, each in evidence.observed_submissions()}
    priorities = Counter(name for name, _ in observed)
    return [
        _landed_submission(evidence, landing, evidence.submissions[name])
        for name, landing in landings.items()
        if _is_undisturbed(evidence.submissions[name])
        and priorities[name] <= 1
        and all(touched[path] == 1 for path in paths[name])
    ]


def _is_undisturbed(submission: SubmissionJson) -> bool:
    reasons = {moment["reason"] for moment in submission.get("timeline", ())}
    return {"submitted", "ready", "merged_by_queue"} <= reasons <= UNDISTURBED_REASONS


def _landed_submission(evidence: Evidence, landing: Landing, submission: SubmissionJson) -> LandedSubmission:
    times = {moment["reason"]: moment["at"] for moment in submission["timeline"]}
    return LandedSubmission(
        submission=submission,
        submitted_at=times["submitted"],
        ready_at=times["ready"],
        position=evidence.landing_position(landing, submission),
        impacted_targets=evidence.impacted_targets_of(submission),
    )


LANDED_REASONS = frozenset({"merged_by_queue", "merged_directly", "tree_mismatch"})


def broken_promises(evidence: Evidence) -> list[str]:
    return [f"{promise.__name__}: {violation}" for promise in PROMISES for violation in promise(evidence)]


def s1_what_was_tested_is_what_lands(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        if landing.run is None:
            yield f"{landing} landed without a run"
        elif landing.run["status"] != "succeeded":
            yield f"{landing} landed with a run that {landing.run['status']}"
        elif not any(
            set(landing.run["requiredStatuses"]) <= evidence.passed(commit)
            for commit in _checked_commits(evidence, landing)
        ):
            yield f"{landing} landed without passing all required checks"
        elif landing.by_forge and evidence.is_reported_as_mismatch(landing):
            continue
        elif not (evidence.landed_as_tested(landing) or evidence.is_rebased(landing)):
            yield f"{landing} is neither what was tested nor a rebase of it"


def _checked_commits(evidence: Evidence, landing: Landing) -> set[Sha]:
    """The tip of the test branch, and, if it can be a direct merge, the head, if it has the same tree. The service may
    have lost the outcome of a direct merge."""
    assert landing.run is not None
    tip, numbers = Sha(landing.run["testBranchSha"]), [each["prNumber"] for each in landing.run["testedPullRequests"]]
    heads = {
        Sha(submission["prSha"])
        for submission in evidence.submissions.values()
        if [submission["prNumber"]] == numbers
        and submission["reason"]["code"] in ("merged_directly", "tree_mismatch", "landing_unknown")
    }
    return {tip, *(head for head in heads if evidence.tree(head) == evidence.tree(tip))}


def s2_the_target_moves_only_forward_and_from_where_it_was(evidence: Evidence) -> Iterator[str]:
    updates = [
        update for transaction in evidence.transactions if (update := transaction.update_of(evidence.target_ref))
    ]
    for before, update in pairwise(updates):
        if update.old is not None and update.old != before.new:
            yield f"{update} does not follow {before}"
    for landing in evidence.landings:
        if not evidence.contains(landing.new, landing.old):
            yield f"{landing} removed commits from the target branch"


def s3_nothing_is_undone_and_what_was_removed_stays_away(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        for path in evidence.unexplained_changes(landing, evidence.submissions_in(landing)):
            yield f"{landing} changed {path}, which none of its pull requests did"
    for transaction in evidence.transactions:
        update = transaction.update_of(evidence.target_ref)
        removed = evidence.removed_by(update) if update and not transaction.by_service else set[Sha]()
        for landing in evidence.landings if removed else ():
            brought_back = landing.log_index > transaction.index and removed & evidence.brought_by(landing)
            if brought_back and not _raced_with_forge_merge(evidence, landing, transaction):
                yield f"{landing} brought back commits that were removed from the target branch"
            for submission in (
                _submissions_of_removed(evidence, removed) if landing.log_index > transaction.index else ()
            ):
                if evidence.brings_head_of(landing, submission):
                    yield f"{landing} brought back {evidence.name(submission['id'])}, which was removed from the branch"


def _submissions_of_removed(evidence: Evidence, removed: set[Sha]) -> list[SubmissionJson]:
    return [submission for submission in evidence.submissions.values() if submission.get("mergedSha") in removed]


def _raced_with_forge_merge(evidence: Evidence, landing: Landing, removal: Transaction) -> bool:
    """A forge merges onto the current tip, whatever it is: the queue can only report it and pause."""
    in_between = any(removal.index < other.log_index < landing.log_index for other in evidence.landings)
    return landing.by_forge and evidence.is_reported_as_mismatch(landing) and not in_between


def s4_nothing_lands_twice(evidence: Evidence) -> Iterator[str]:
    landed = Counter(
        submission["id"] for landing in evidence.landings for submission in evidence.submissions_in(landing)
    )
    yield from (
        f"{evidence.name(submission)} landed {count} times" for submission, count in landed.items() if count > 1
    )


def s5_merged_means_landed_and_final_states_are_final(evidence: Evidence) -> Iterator[str]:
    landed = {submission["id"] for landing in evidence.landings for submission in evidence.submissions_in(landing)}
    for submission in evidence.submissions.values():
        name = evidence.name(submission["id"])
        by_us = submission["state"] == "merged" and submission["reason"]["code"] in LANDED_REASONS
        yield from _check_timeline(submission)
        if by_us != (submission["id"] in landed):
            yield f"{name} is {submission['state']} and {'has' if submission['id'] in landed else 'has not'} landed"
        if by_us and not evidence.was_on_target(Sha(submission["mergedSha"])):
            yield f"{name} is recorded as {submission['mergedSha']}, which was never on the target branch"
    ends = dict[str, tuple[int, str]]()
    for index, requested_after, submission in evidence.observed_submissions():
        end, state = ends.get(submission["id"], (index, submission["state"]))
        if end < requested_after and submission["state"] != state:
            yield f"{evidence.name(submission['id'])} was {state} and then {submission['state']}"
        if submission["state"] in ENDED:
            ends.setdefault(submission["id"], (index, submission["state"]))


def _check_timeline(submission: SubmissionJson) -> Iterator[str]:
    transitions = list(reversed(submission.get("timeline", ())))
    for before, transition in pairwise(transitions):
        if before["to"] != transition["from"]:
            yield f"the timeline of #{submission['prNumber']} jumps from {before['to']} to {transition['from']}"
    if transitions and transitions[-1]["to"] != submission["state"]:
        yield f"#{submission['prNumber']} is {submission['state']}, and its timeline ends with {transitions[-1]['to']}"


def s6_the_head_that_lands_is_the_head_that_was_submitted(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        for submission in evidence.submissions_in(landing):
            if landing.run is not None and not evidence.brings_only(landing, submission):
                yield f"{landing} does not bring {submission['prSha']} for {evidence.name(submission['id'])}"


def s7_cancelled_never_lands_and_paused_lands_nothing(evidence: Evidence) -> Iterator[str]:
    landed = {
        submission["id"]: landing.log_index
        for landing in evidence.landings
        for submission in evidence.submissions_in(landing)
    }
    for response in evidence.responses_to("cancelPullRequest"):
        if landed.get(response.content["id"], -1) >= _end_of_landings(response):
            yield f"{evidence.name(response.content['id'])} was cancelled and landed"
    requests = [response for response in evidence.responses_to("updateQueue") if "state" in response.body]
    for pause in (request for request in requests if request.body["state"] == "PAUSED"):
        end = _end_of_pause(evidence, pause, requests)
        for landing in evidence.landings:
            if pause.log_index_at_response <= landing.log_index < end:
                yield f"{landing} landed while the queue was paused"


def _end_of_pause(evidence: Evidence, pause: ApiResponse, requests: list[ApiResponse]) -> float:
    """A pause is acknowledged when no push is in progress: another request may have resumed the queue by then."""
    others = (request for request in requests if request.body["state"] != "PAUSED")
    return min(
        (other.log_index_at_request for other in others if not evidence.preceded(other, pause)), default=float("inf")
    )


def _end_of_landings(response: ApiResponse) -> int:
    """A cancel request for an ended submission only returns its state; that can be an unknown landing outcome."""
    return 0 if response.content["reason"]["code"] == "cancelled_by_user" else response.log_index_at_response


def s8_first_ready_lands_first(evidence: Evidence) -> Iterator[str]:
    yield from find_overtakings(evidence)


def s9_acknowledged_requests_are_kept(evidence: Evidence) -> Iterator[str]:
    for response in evidence.responses_to("submitPullRequest"):
        if response.content["id"] not in evidence.submissions:
            yield f"the submission of #{response.content['prNumber']} is lost"
    for response in evidence.responses_to("cancelPullRequest"):
        if evidence.submissions[response.content["id"]]["state"] != "cancelled":
            yield f"the cancellation of #{response.content['prNumber']} is lost"
    for response in evidence.responses_to("reportCommitStatus"):
        run = evidence.run_with_tip(Sha(response.body["sha"]))
        if run is not None and response.body["context"] not in {check["context"] for check in run["statusChecks"]}:
            yield f"the status {response.body['context']} of {response.body['sha']} is lost"


def s10_repeating_has_no_second_effect(evidence: Evidence) -> Iterator[str]:
    submissions = Counter(submission["prNumber"] for submission in evidence.submissions.values())
    for number, count in submissions.items():
        if count > (requested := evidence.submit_request_count(number)):
            yield f"#{number} was submitted {requested} times and has {count} submissions"


NOTES_REF = "refs/notes/mergeyard/provenance"
META_REF = re.compile(r"refs/pull/\d+/meta")


def s14_only_own_refs_and_heads_that_merge_are_written(evidence: Evidence) -> Iterator[str]:
    """A head branch moves only from the tested head to the commit that lands, and back if nothing lands; or it is
    deleted after the merge. It never moves from a commit that its author pushed later."""
    queues = (evidence, *evidence.other_queues)
    targets = {*(queue.target_ref for queue in queues), NOTES_REF}
    merged = {submission["mergedSha"] for queue in queues for submission in queue.submissions.values()}
    tips, moved_by_us = dict[str, Sha | None](), dict[str, HeadMove]()
    landed = {landing.log_index: evidence.submissions_in(landing) for landing in evidence.landings}
    for transaction in evidence.transactions:
        for update in transaction.updates:
            if not transaction.by_service:
                moved_by_us.pop(update.ref, None)
            elif not (update.ref in targets or update.ref.startswith(TEST_BRANCH_PREFIX) or META_REF.match(update.ref)):
                problem = _find_head_problem(evidence, transaction, update, tips, moved_by_us)
                if problem is not None:
                    yield f"{update.ref} {problem}: {update.old} to {update.new}"
        tips |= {update.ref: update.new for update in transaction.updates}
        for submission in landed.get(transaction.index, ()):
            move = moved_by_us.get(evidence.head_branch_ref(submission["prNumber"]))
            if move is not None and submission["mergedSha"] not in (None, "", move.commit):
                yield f"{evidence.name(submission['id'])} landed as another commit than {move.commit}"
    for ref, move in moved_by_us.items():
        if move.commit not in merged:
            yield f"{ref} is still at {move.commit}, which did not land, and was not moved back to {move.head}"


class HeadMove(Struct, frozen=True):
    """A head branch that the service moved last, and where to."""

    head: Sha
    commit: Sha


def _find_head_problem(
    evidence: Evidence,
    transaction: Transaction,
    update: RefUpdate,
    tips: Mapping[str, Sha | None],
    moved_by_us: dict[str, HeadMove],
) -> str | None:
    """Adds the move to those of the service, or removes one."""
    before, (number, head) = moved_by_us.pop(update.ref, None), evidence.origin_of(update.new or update.old)
    if tips.get(update.ref, update.old) != update.old or update.old is None:
        return "was written although it was elsewhere"
    if update.new is None:
        return None if _was_merged_before(evidence, transaction, update.old) else "was deleted without a merge"
    if before is not None and (before.commit, before.head) == (update.old, update.new):
        targets = [tips.get(queue.target_ref) for queue in (evidence, *evidence.other_queues)]
        landed = any(tip is not None and evidence.contains(tip, before.commit) for tip in targets)
        return "was moved back although it had landed" if landed else None
    if evidence.head_branch_ref(number) != update.ref:
        return "was written but is no target branch, test branch or head branch of what merges"
    if head != update.old:
        return "was moved from another head than the tested one"
    moved_by_us[update.ref] = HeadMove(update.old, update.new)
    return None


def _was_merged_before(evidence: Evidence, transaction: Transaction, tip: Sha) -> bool:
    """Whether this head, or the commit that a head branch moved to, landed before the transaction."""
    queues = (evidence, *evidence.other_queues)
    submissions = [submission for queue in queues for submission in queue.submissions.values()]
    merged = {each["mergedSha"] for each in submissions if tip in (each["prSha"], each["mergedSha"])}
    return any(
        landing.log_index < transaction.index and not merged.isdisjoint(queue.brought_by(landing))
        for queue in queues
        for landing in queue.landings
    )


def s16_a_pull_request_that_merged_brought_its_whole_change(evidence: Evidence) -> Iterator[str]:
    for landing in evidence.landings:
        for submission in evidence.submissions_in(landing):
            is_compared = landing.run is not None and submission["reason"]["code"] != "tree_mismatch"
            if is_compared and not evidence.brings_whole(landing, submission):
                yield f"{landing} does not bring the whole change of {evidence.name(submission['id'])}"


PROMISES = (
    s1_what_was_tested_is_what_lands,
    s2_the_target_moves_only_forward_and_from_where_it_was,
    s3_nothing_is_undone_and_what_was_removed_stays_away,
    s4_nothing_lands_twice,
    s5_merged_means_landed_and_final_states_are_final,
    s6_the_head_that_lands_is_the_head_that_was_submitted,
    s7_cancelled_never_lands_and_paused_lands_nothing,
    s8_first_ready_lands_first,
    s9_acknowledged_requests_are_kept,
    s10_repeating_has_no_second_effect,
    s14_only_own_refs_and_heads_that_merge_are_written,
    s16_a_pull_request_that_merged_brought_its_whole_change,
)
