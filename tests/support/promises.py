"""Checks a server's promises with three logs: updates of the Git host's refs, the server's records, its API responses.

Each promise is a function from the evidence to its violations. S1 and so on are the numbers in
`docs/understand/promises.md`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiResponse
from tests.support.evidence import ENDED, Evidence, Landing, SubmissionJson
from tests.support.host_log import TEST_BRANCH_PREFIX, Transaction

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
        elif not set(landing.run["requiredStatuses"]) <= evidence.passed(_checked_commit(evidence, landing)):
            yield f"{landing} landed without passing all required checks"
        elif landing.by_forge and evidence.is_reported_as_mismatch(landing):
            continue
        elif not (evidence.landed_as_tested(landing) or evidence.is_rebased(landing)):
            yield f"{landing} is neither what was tested nor a rebase of it"


def _checked_commit(evidence: Evidence, landing: Landing) -> Sha:
    """The tip of the test branch, or, for a direct merge, the head, if it has the same tree."""
    assert landing.run is not None
    tip = Sha(landing.run["testBranchSha"])
    merged = [submission for submission in evidence.submissions.values() if submission["mergedSha"] == landing.new]
    if len(merged) != 1 or merged[0]["reason"]["code"] != "merged_directly":
        return tip
    head = Sha(merged[0]["prSha"])
    return head if evidence.tree(head) == evidence.tree(tip) else tip


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


def s14_only_the_target_and_test_branches_are_written(evidence: Evidence) -> Iterator[str]:
    targets = {evidence.target_ref, *evidence.other_target_refs}
    for transaction in evidence.transactions:
        for update in transaction.updates if transaction.by_service else ():
            if update.ref not in targets and not update.ref.startswith(TEST_BRANCH_PREFIX):
                yield f"{update.ref} was written but is neither a target branch nor a test branch"


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
    s14_only_the_target_and_test_branches_are_written,
)
