"""The states of pull requests, queues, runs and checks, with the names of the API; the legal
transitions; the reasons."""

from enum import StrEnum

from msgspec import Struct


class PullRequestState(StrEnum):
    NOT_READY = "not_ready"
    PENDING = "pending"
    TESTING = "testing"
    PENDING_FAILURE = "pending_failure"
    TESTS_PASSED = "tests_passed"
    MERGED = "merged"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_STATES = frozenset({PullRequestState.MERGED, PullRequestState.FAILED, PullRequestState.CANCELLED})


class QueueState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DRAINING = "DRAINING"
    SWITCHING_MODES = "SWITCHING_MODES"


class RunStatus(StrEnum):
    PREPARING = "preparing"
    """Its test branch is being built: the API does not show such a run yet."""
    IN_PROGRESS = "in_progress"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_RUN_STATUSES = frozenset({RunStatus.PREPARING, RunStatus.IN_PROGRESS})


class CheckState(StrEnum):
    PENDING = "pending"
    PASSED = "passed"
    NEUTRAL = "neutral"
    """Skipped or neutral: satisfies its own run, but does not clear failed runs ahead."""
    FAILED = "failed"


SATISFIED_CHECK_STATES = frozenset({CheckState.PASSED, CheckState.NEUTRAL})
"""A required check in one of these states lets its own run pass."""


class Mergeability(StrEnum):
    UNKNOWN = "unknown"
    CHECKING = "checking"
    MERGEABLE = "mergeable"
    NOT_MERGEABLE = "not_mergeable"


class Reason(StrEnum):
    # A pull request was submitted, advanced or merged.
    SUBMITTED = "submitted"
    READY = "ready"
    TEST_RUN_STARTED = "test_run_started"
    TEST_RUN_PASSED = "test_run_passed"
    SUCCESSOR_PASSED = "successor_passed"
    MERGED_BY_QUEUE = "merged_by_queue"
    MERGED_DIRECTLY = "merged_directly"
    MERGED_MANUALLY = "merged_manually"
    MERGED_WITH_ANOTHER = "merged_with_another"
    TREE_MISMATCH = "tree_mismatch"
    # The tests of a pull request failed, but not yet for good.
    CAUSE_UNKNOWN = "cause_unknown"
    BATCH_FAILED = "batch_failed"
    # A pull request failed.
    TEST_RUN_FAILED = "test_run_failed"
    TEST_RUN_TIMEOUT = "test_run_timeout"
    FAILED_BY_OPTIMIZATION = "failed_by_optimization"
    MERGE_CONFLICT = "merge_conflict"
    CONTAINS_REMOVED_COMMIT = "contains_removed_commit"
    NOTHING_TO_MERGE = "nothing_to_merge"
    PR_TOO_LARGE = "pr_too_large"
    INVALID_TREE = "invalid_tree"
    NO_REQUIRED_STATUSES = "no_required_statuses"
    CONFIG_INVALID = "config_invalid"
    BREAKS_CONFIG = "breaks_config"
    REBASE_DIFFERS = "rebase_differs"
    START_REFUSED = "start_refused"
    MERGE_REFUSED = "merge_refused"
    # A pull request was removed.
    CANCELLED_BY_USER = "cancelled_by_user"
    PR_CLOSED = "pr_closed"
    PR_PUSHED = "pr_pushed"
    HEAD_NOT_MOVED_BACK = "head_not_moved_back"
    PR_BASE_CHANGED = "pr_base_changed"
    PR_CONVERTED_TO_DRAFT = "pr_converted_to_draft"
    NOT_READY_TIMEOUT = "not_ready_timeout"
    LANDING_UNKNOWN = "landing_unknown"
    # A pull request is tested again, or has to become ready again.
    PREREQUISITE_REMOVED = "prerequisite_removed"
    TARGET_BRANCH_MOVED = "target_branch_moved"
    SKIP_THE_LINE_INTERRUPTED = "skip_the_line_interrupted"
    MADE_URGENT = "made_urgent"
    ORDER_CHANGED = "order_changed"
    DEPENDENCIES_CHANGED = "dependencies_changed"
    CONTAINS_WAITING_PR = "contains_waiting_pr"
    BATCHMATE_REMOVED = "batchmate_removed"
    BISECTION = "bisection"
    BISECTION_LEFT_OUT = "bisection_left_out"
    BISECTION_PASSED = "bisection_passed"
    CLEARANCE_WITHDRAWN = "clearance_withdrawn"
    OPTIMISTIC_MERGING_OFF = "optimistic_merging_off"
    RUN_AHEAD_STOPPED = "run_ahead_stopped"
    RUN_REPLACED = "run_replaced"
    TEST_BRANCH_NOT_BUILT = "test_branch_not_built"
    TEST_BRANCH_MOVED = "test_branch_moved"
    BASE_COMMIT_MISSING = "base_commit_missing"
    MODE_SWITCHED = "mode_switched"
    QUEUE_RESUMED = "queue_resumed"
    TESTS_RESTARTED = "tests_restarted"
    REQUIRED_STATUSES_CHANGED = "required_statuses_changed"
    NO_LONGER_MERGEABLE = "no_longer_mergeable"
    # A person changed how the queue treats a pull request.
    PRIORITY_CHANGED = "priority_changed"
    FORCED = "forced"
    FORCE_WITHDRAWN = "force_withdrawn"
    UNBATCHED = "unbatched"
    BATCHING_ALLOWED = "batching_allowed"
    GUARDED_PATHS_APPROVED = "guarded_paths_approved"
    BASE_TEST_RESTARTED = "base_test_restarted"
    # A pull request lacks something that a rule of the Git host requires.
    CHANGES_REQUESTED = "changes_requested"
    WAITING_FOR_REVIEW = "waiting_for_review"
    WAITING_FOR_CODE_OWNER = "waiting_for_code_owner"
    WAITING_FOR_LAST_PUSH_APPROVAL = "waiting_for_last_push_approval"
    WAITING_FOR_CONVERSATIONS = "waiting_for_conversations"
    HEAD_CHECKS_FAILED = "head_checks_failed"
    WAITING_FOR_HEAD_CHECKS = "waiting_for_head_checks"
    WAITING_FOR_DEPLOYMENTS = "waiting_for_deployments"
    BLOCKED_BY_HOST_RULE = "blocked_by_host_rule"
    COMMITS_UNSIGNED = "commits_unsigned"
    SIGNING_KEY_NOT_ACCEPTED = "signing_key_not_accepted"
    HOST_RULE_UNREADABLE = "host_rule_unreadable"
    # A pull request waits.
    BASE_BRANCH_MISMATCH = "base_branch_mismatch"
    DRAFT = "draft"
    NOT_MERGEABLE = "not_mergeable"
    MERGEABILITY_UNKNOWN = "mergeability_unknown"
    MISSING_IMPACTED_TARGETS = "missing_impacted_targets"
    WAITING_FOR_MAINTAINER = "waiting_for_maintainer"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_DRAINING = "queue_draining"
    SWITCHING_MODES = "switching_modes"
    WAITING_FOR_SLOT = "waiting_for_slot"
    WAITING_FOR_BATCH = "waiting_for_batch"
    WAITING_FOR_CHECKS = "waiting_for_checks"
    WAITING_FOR_PRS_AHEAD = "waiting_for_prs_ahead"
    WAITING_FOR_PRS_BEHIND = "waiting_for_prs_behind"
    WAITING_FOR_BASE = "waiting_for_base"
    BASE_BROKEN = "base_broken"
    CONFLICTS_WITH_PR_AHEAD = "conflicts_with_pr_ahead"
    TARGET_BRANCH_MISSING = "target_branch_missing"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    RATE_LIMITED = "rate_limited"
    PROVIDER_REFUSED = "provider_refused"
    SERVER_FAILURE = "server_failure"
    # The queue itself changed.
    STATE_REQUESTED = "state_requested"
    MODE_CHANGED = "mode_changed"
    SETTINGS_CHANGED = "settings_changed"
    LANDING_REFUSED = "landing_refused"
    TEST_BRANCH_REFUSED = "test_branch_refused"
    AUDIT_MISMATCH = "audit_mismatch"


REASON_MESSAGES: dict[Reason, str] = {
    Reason.SUBMITTED: "The pull request was submitted to the queue.",
    Reason.READY: "The pull request is ready and queued.",
    Reason.TEST_RUN_STARTED: "A test run with this pull request started.",
    Reason.TEST_RUN_PASSED: "All required checks passed. The pull request merges as soon as those ahead have merged.",
    Reason.SUCCESSOR_PASSED: "A later run that includes these changes passed.",
    Reason.MERGED_BY_QUEUE: "The queue merged the pull request as tested.",
    Reason.MERGED_DIRECTLY: "Merged without new tests: the head was up to date, and its required checks had passed.",
    Reason.MERGED_MANUALLY: "The pull request was merged outside the queue.",
    Reason.MERGED_WITH_ANOTHER: "The queue merged another pull request that contains all commits of this one.",
    Reason.TREE_MISMATCH: (
        "The merged result differs from the tested one. The queue paused: compare both before you resume it."
    ),
    Reason.CAUSE_UNKNOWN: "The tests failed. Another change may be the cause. No action is needed yet.",
    Reason.BATCH_FAILED: "The batch failed. The queue searches for the cause. No action is needed yet.",
    Reason.TEST_RUN_FAILED: "A required check failed with these changes. Fix them, push, and submit again.",
    Reason.TEST_RUN_TIMEOUT: "The test run did not finish in time. See which check is missing, then submit again.",
    Reason.FAILED_BY_OPTIMIZATION: (
        "The batch failed with these changes and passed without them. Fix them, push, and submit again."
    ),
    Reason.MERGE_CONFLICT: (
        "The changes conflict with the target branch. Resolve the conflicts, push, and submit again."
    ),
    Reason.CONTAINS_REMOVED_COMMIT: (
        "A commit here was removed from the target branch. Rebase to drop the commit, push, and submit again."
    ),
    Reason.NOTHING_TO_MERGE: (
        "The pull request changes nothing on the target branch. Close it, or push changes and submit again."
    ),
    Reason.PR_TOO_LARGE: "The pull request exceeds a limit of the queue. Squash or split it, then submit again.",
    Reason.INVALID_TREE: (
        "Git refuses files in this pull request. Remove them from all commits, push, and submit again."
    ),
    Reason.NO_REQUIRED_STATUSES: (
        "No required checks are configured, so nothing can merge. An administrator has to set at least one."
    ),
    Reason.CONFIG_INVALID: "The file .mergeyard.toml on the target branch is invalid. Fix it there, then submit again.",
    Reason.REBASE_DIFFERS: (
        "The queue's rebase gives other files than the merge. Rebase or squash your branch, push, and submit again."
    ),
    Reason.BREAKS_CONFIG: "The pull request makes .mergeyard.toml invalid. Fix the file, push, and submit again.",
    Reason.START_REFUSED: "The Git host refused the test branch. Fix what its message names, then submit again.",
    Reason.MERGE_REFUSED: "The Git host refused to merge this. Fix what its message names, then submit again.",
    Reason.CANCELLED_BY_USER: "A user removed the pull request from the queue.",
    Reason.PR_CLOSED: "The pull request was closed.",
    Reason.PR_PUSHED: "New commits were pushed. Submit again to test them.",
    Reason.HEAD_NOT_MOVED_BACK: "The head branch did not move back. Push the head that it had, and submit again.",
    Reason.PR_BASE_CHANGED: "The base branch was changed. Submit again if the new base branch has a queue.",
    Reason.PR_CONVERTED_TO_DRAFT: "The pull request was converted to a draft. Submit again when it is ready.",
    Reason.NOT_READY_TIMEOUT: "The pull request was not ready for too long. Submit again when it is ready.",
    Reason.LANDING_UNKNOWN: (
        "The queue could not confirm whether this merged. Check the target branch before you submit again."
    ),
    Reason.PREREQUISITE_REMOVED: "A pull request is no longer ahead. This one is tested again without it.",
    Reason.TARGET_BRANCH_MOVED: "The target branch moved. The pull request is tested again on the new tip.",
    Reason.SKIP_THE_LINE_INTERRUPTED: "An urgent pull request went ahead. This one is tested again on top of it.",
    Reason.MADE_URGENT: "A user made the pull request urgent. This one is tested again, as far ahead as possible.",
    Reason.ORDER_CHANGED: "The order of the pull requests ahead changed. This one is tested again.",
    Reason.DEPENDENCIES_CHANGED: (
        "The pull request depends on other ones ahead than before. This one is tested again on top of those."
    ),
    Reason.CONTAINS_WAITING_PR: (
        "The pull request contains the commits of another one, which is tested first. Then this one is tested again."
    ),
    Reason.BATCHMATE_REMOVED: "A pull request of the same batch left. The others are tested again.",
    Reason.BISECTION: "The batch of this pull request failed. The queue tests parts of the batch to find the cause.",
    Reason.BISECTION_LEFT_OUT: "The batch also failed without this pull request. This one is tested again.",
    Reason.BISECTION_PASSED: "These changes passed in a run of the bisection. The pull request is tested again.",
    Reason.CLEARANCE_WITHDRAWN: (
        "The later run that had passed with these changes no longer counts. The pull request is tested again."
    ),
    Reason.OPTIMISTIC_MERGING_OFF: (
        "The queue no longer merges optimistically, so a later run does not count. The pull request is tested again."
    ),
    Reason.RUN_AHEAD_STOPPED: "The run ahead, which this one continues, was stopped. The pull request is tested again.",
    Reason.RUN_REPLACED: "Another test run of this pull request counts instead of the failed one.",
    Reason.TEST_BRANCH_NOT_BUILT: "The queue could not build the next test branch with this pull request.",
    Reason.TEST_BRANCH_MOVED: (
        "The test branch no longer has the tested commit, so this run cannot merge. The pull request is tested again."
    ),
    Reason.BASE_COMMIT_MISSING: (
        "The commit that the tests were based on no longer exists. The pull request is tested again."
    ),
    Reason.MODE_SWITCHED: "The queue switched modes. Pull requests that had not merged are tested again.",
    Reason.QUEUE_RESUMED: "The tests failed while the queue was paused. They run again.",
    Reason.TESTS_RESTARTED: "A user restarted the tests.",
    Reason.REQUIRED_STATUSES_CHANGED: "The required checks changed. The pull request is tested again.",
    Reason.NO_LONGER_MERGEABLE: (
        "The pull request now conflicts with the target branch. Resolve the conflicts, and push."
    ),
    Reason.PRIORITY_CHANGED: "A user changed the priority of the pull request.",
    Reason.FORCED: "A user forced the pull request. The rules of the Git host are ignored, the tests are not.",
    Reason.FORCE_WITHDRAWN: "A user no longer forces the pull request. The rules of the Git host apply again.",
    Reason.UNBATCHED: "A user took the pull request out of batches. The next run tests it alone.",
    Reason.BATCHING_ALLOWED: "A user allowed batches again. The next run can test it with others.",
    Reason.GUARDED_PATHS_APPROVED: "A user approved, as a maintainer, the changes of guarded paths at this head.",
    Reason.BASE_TEST_RESTARTED: "A user had the target branch itself tested again.",
    Reason.CHANGES_REQUESTED: "A reviewer requested changes. Make them, and ask for another review.",
    Reason.WAITING_FOR_REVIEW: "The pull request lacks approving reviews. Ask for a review.",
    Reason.WAITING_FOR_CODE_OWNER: "A code owner of the changed files has to approve. Ask for a review.",
    Reason.WAITING_FOR_LAST_PUSH_APPROVAL: (
        "The last push needs the approval of another person than its author. Ask for one."
    ),
    Reason.WAITING_FOR_CONVERSATIONS: "Some review conversations are not resolved. Resolve them.",
    Reason.HEAD_CHECKS_FAILED: "Required checks of the pull request itself failed. Fix or rerun them.",
    Reason.WAITING_FOR_HEAD_CHECKS: (
        "Required checks of the pull request itself are running or have not reported. See that CI starts them."
    ),
    Reason.WAITING_FOR_DEPLOYMENTS: "A required deployment of the pull request is missing. Deploy its head.",
    Reason.BLOCKED_BY_HOST_RULE: "A rule of the Git host blocks the pull request. Satisfy or change the rule.",
    Reason.COMMITS_UNSIGNED: (
        "The Git host requires signed commits, and some here are unsigned. Rebase to sign them, then push."
    ),
    Reason.SIGNING_KEY_NOT_ACCEPTED: (
        "The Git host requires signed commits. An administrator has to register the queue's signing key there."
    ),
    Reason.HOST_RULE_UNREADABLE: (
        "The queue cannot read a rule of the Git host. An administrator has to grant the permission."
    ),
    Reason.BASE_BRANCH_MISMATCH: "The base branch is not the target branch of this queue. Change the base branch.",
    Reason.DRAFT: "The pull request is a draft. Mark it as ready.",
    Reason.NOT_MERGEABLE: "The pull request conflicts with the target branch. Resolve the conflicts, and push.",
    Reason.MERGEABILITY_UNKNOWN: "The queue does not know yet whether this can be merged. No action is needed.",
    Reason.MISSING_IMPACTED_TARGETS: "The impacted targets of the current head are unknown. Upload them.",
    Reason.WAITING_FOR_MAINTAINER: (
        "The pull request comes from a fork and changes guarded paths. A maintainer has to submit it."
    ),
    Reason.QUEUE_PAUSED: "The queue is paused. Nothing starts or merges until an administrator resumes it.",
    Reason.QUEUE_DRAINING: "The queue is draining. New pull requests wait until an administrator resumes it.",
    Reason.SWITCHING_MODES: "The queue is switching modes. New runs start when the active ones are done.",
    Reason.WAITING_FOR_SLOT: "Waiting for a free test slot.",
    Reason.WAITING_FOR_BATCH: "Waiting for the batch to fill.",
    Reason.WAITING_FOR_CHECKS: "Waiting for required checks.",
    Reason.WAITING_FOR_PRS_AHEAD: "Waiting for the pull requests ahead.",
    Reason.WAITING_FOR_PRS_BEHIND: "A later run that includes these changes is not finished and may still pass.",
    Reason.WAITING_FOR_BASE: "The queue tests the target branch itself, to find out whether the failure is there.",
    Reason.BASE_BROKEN: (
        "The target branch itself fails its required checks. Fix it, or restart the pull request if CI was the cause."
    ),
    Reason.CONFLICTS_WITH_PR_AHEAD: (
        "The changes conflict with pull requests ahead. Waiting until these have merged or left."
    ),
    Reason.TARGET_BRANCH_MISSING: "The target branch does not exist. Create the branch, or delete the queue.",
    Reason.PROVIDER_UNAVAILABLE: (
        "The queue cannot reach the repository on the Git host. The queue continues when it can."
    ),
    Reason.RATE_LIMITED: "The Git host limits how many requests it accepts. The queue continues by itself.",
    Reason.PROVIDER_REFUSED: (
        "The Git host refuses what the queue asks of it. An administrator has to repair the permission or the rule."
    ),
    Reason.SERVER_FAILURE: (
        "The server of the queue fails, not the Git host. An operator has to read its log and check its disk."
    ),
    Reason.STATE_REQUESTED: "A user changed the state of the queue.",
    Reason.MODE_CHANGED: "A user changed the mode of the queue.",
    Reason.SETTINGS_CHANGED: "A user changed the settings of the queue.",
    Reason.LANDING_REFUSED: "The Git host refused to move the target branch. Fix what its message names, then resume.",
    Reason.TEST_BRANCH_REFUSED: (
        "The Git host refused a test branch or its draft. Fix what its message names, then resume."
    ),
    Reason.AUDIT_MISMATCH: "The target branch differs from what is recorded. Check the mismatches, then resume.",
}


USER = "A user"
"""In a message: the person who caused the change. Where the name is known, it is shown instead."""
USER_REASONS = frozenset(reason for reason, message in REASON_MESSAGES.items() if message.startswith(f"{USER} "))

REVIEW_REASONS = (
    Reason.CHANGES_REQUESTED,
    Reason.WAITING_FOR_REVIEW,
    Reason.WAITING_FOR_CODE_OWNER,
    Reason.WAITING_FOR_LAST_PUSH_APPROVAL,
    Reason.WAITING_FOR_CONVERSATIONS,
)
"""A person withdrew or withholds consent: an admitted pull request leaves the queue's runs at once."""
REQUIREMENT_REASONS = (
    *REVIEW_REASONS,
    Reason.HEAD_CHECKS_FAILED,
    Reason.WAITING_FOR_HEAD_CHECKS,
    Reason.WAITING_FOR_DEPLOYMENTS,
    Reason.BLOCKED_BY_HOST_RULE,
    Reason.COMMITS_UNSIGNED,
    Reason.SIGNING_KEY_NOT_ACCEPTED,
    Reason.HOST_RULE_UNREADABLE,
)
"""What a rule of the Git host can require, in the order in which they are shown."""


UPDATE_REASONS = (
    Reason.PRIORITY_CHANGED,
    Reason.FORCED,
    Reason.FORCE_WITHDRAWN,
    Reason.UNBATCHED,
    Reason.BATCHING_ALLOWED,
    Reason.GUARDED_PATHS_APPROVED,
    Reason.BASE_TEST_RESTARTED,
)
"""A user changed how the queue treats a pull request. Its state stays the same."""


class Refusal(StrEnum):
    """Why a request changed nothing; each is an error code of the API."""

    PR_NOT_SUBMITTED = "pr_not_submitted"
    PR_ALREADY_MERGED = "pr_already_merged"
    PR_CLOSED = "pr_closed"
    MERGE_IN_PROGRESS = "merge_in_progress"
    MODE_SWITCH_IN_PROGRESS = "mode_switch_in_progress"


LIVE_STATES = (
    PullRequestState.NOT_READY,
    PullRequestState.PENDING,
    PullRequestState.TESTING,
    PullRequestState.PENDING_FAILURE,
    PullRequestState.TESTS_PASSED,
)
ADMITTED_STATES = LIVE_STATES[1:]


class PullRequestTransition(Struct, frozen=True):
    sources: tuple[PullRequestState | None, ...]
    to: PullRequestState
    reasons: tuple[Reason, ...]


PULL_REQUEST_TRANSITIONS = (
    PullRequestTransition((None,), PullRequestState.NOT_READY, (Reason.SUBMITTED,)),
    PullRequestTransition((PullRequestState.NOT_READY,), PullRequestState.PENDING, (Reason.READY,)),
    PullRequestTransition((PullRequestState.PENDING,), PullRequestState.TESTING, (Reason.TEST_RUN_STARTED,)),
    PullRequestTransition(
        (PullRequestState.PENDING, PullRequestState.TESTING, PullRequestState.PENDING_FAILURE),
        PullRequestState.TESTS_PASSED,
        (Reason.TEST_RUN_PASSED, Reason.SUCCESSOR_PASSED),
    ),
    PullRequestTransition(
        (PullRequestState.TESTING,), PullRequestState.PENDING_FAILURE, (Reason.CAUSE_UNKNOWN, Reason.BATCH_FAILED)
    ),
    PullRequestTransition(
        (PullRequestState.PENDING, PullRequestState.TESTING, PullRequestState.PENDING_FAILURE),
        PullRequestState.FAILED,
        (Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION),
    ),
    PullRequestTransition(
        (PullRequestState.TESTING, PullRequestState.PENDING_FAILURE, PullRequestState.TESTS_PASSED),
        PullRequestState.PENDING,
        (
            Reason.PREREQUISITE_REMOVED,
            Reason.TARGET_BRANCH_MOVED,
            Reason.TARGET_BRANCH_MISSING,
            Reason.SKIP_THE_LINE_INTERRUPTED,
            Reason.MADE_URGENT,
            Reason.ORDER_CHANGED,
            Reason.DEPENDENCIES_CHANGED,
            Reason.CONTAINS_WAITING_PR,
            Reason.CONFLICTS_WITH_PR_AHEAD,
            Reason.BATCHMATE_REMOVED,
            Reason.BASE_BROKEN,
            Reason.BISECTION,
            Reason.BISECTION_LEFT_OUT,
            Reason.BISECTION_PASSED,
            Reason.CLEARANCE_WITHDRAWN,
            Reason.OPTIMISTIC_MERGING_OFF,
            Reason.RUN_AHEAD_STOPPED,
            Reason.RUN_REPLACED,
            Reason.TEST_BRANCH_NOT_BUILT,
            Reason.TEST_BRANCH_MOVED,
            Reason.BASE_COMMIT_MISSING,
            Reason.MODE_SWITCHED,
            Reason.QUEUE_RESUMED,
            Reason.REQUIRED_STATUSES_CHANGED,
            Reason.NO_REQUIRED_STATUSES,
            Reason.CONFIG_INVALID,
            Reason.TESTS_RESTARTED,
        ),
    ),
    PullRequestTransition(
        ADMITTED_STATES,
        PullRequestState.NOT_READY,
        (
            Reason.NO_LONGER_MERGEABLE,
            Reason.WAITING_FOR_MAINTAINER,
            Reason.NO_REQUIRED_STATUSES,
            *REQUIREMENT_REASONS,
        ),
    ),
    PullRequestTransition(
        (PullRequestState.PENDING,),
        PullRequestState.FAILED,
        (
            Reason.MERGE_CONFLICT,
            Reason.CONTAINS_REMOVED_COMMIT,
            Reason.NOTHING_TO_MERGE,
            Reason.INVALID_TREE,
            Reason.CONFIG_INVALID,
            Reason.BREAKS_CONFIG,
            Reason.REBASE_DIFFERS,
            Reason.START_REFUSED,
        ),
    ),
    PullRequestTransition(
        (PullRequestState.TESTS_PASSED,),
        PullRequestState.MERGED,
        (Reason.MERGED_BY_QUEUE, Reason.MERGED_DIRECTLY, Reason.TREE_MISMATCH),
    ),
    PullRequestTransition((PullRequestState.TESTS_PASSED,), PullRequestState.FAILED, (Reason.MERGE_REFUSED,)),
    PullRequestTransition(LIVE_STATES, PullRequestState.FAILED, (Reason.PR_TOO_LARGE,)),
    PullRequestTransition(
        LIVE_STATES,
        PullRequestState.CANCELLED,
        (
            Reason.CANCELLED_BY_USER,
            Reason.PR_CLOSED,
            Reason.PR_PUSHED,
            Reason.HEAD_NOT_MOVED_BACK,
            Reason.NOT_READY_TIMEOUT,
            Reason.LANDING_UNKNOWN,
        ),
    ),
    PullRequestTransition(
        ADMITTED_STATES, PullRequestState.CANCELLED, (Reason.PR_BASE_CHANGED, Reason.PR_CONVERTED_TO_DRAFT)
    ),
    PullRequestTransition(LIVE_STATES, PullRequestState.MERGED, (Reason.MERGED_MANUALLY, Reason.MERGED_WITH_ANOTHER)),
)

AUTO_PAUSE_REASONS = (Reason.LANDING_REFUSED, Reason.TEST_BRANCH_REFUSED, Reason.TREE_MISMATCH, Reason.AUDIT_MISMATCH)
"""A queue pauses itself for these reasons."""

QUEUE_TRANSITIONS: dict[tuple[QueueState, QueueState], tuple[Reason, ...]] = {
    (QueueState.RUNNING, QueueState.PAUSED): (Reason.STATE_REQUESTED, *AUTO_PAUSE_REASONS),
    (QueueState.RUNNING, QueueState.DRAINING): (Reason.STATE_REQUESTED,),
    (QueueState.RUNNING, QueueState.SWITCHING_MODES): (Reason.MODE_CHANGED,),
    (QueueState.PAUSED, QueueState.RUNNING): (Reason.STATE_REQUESTED,),
    (QueueState.PAUSED, QueueState.DRAINING): (Reason.STATE_REQUESTED,),
    (QueueState.PAUSED, QueueState.SWITCHING_MODES): (Reason.STATE_REQUESTED,),
    (QueueState.DRAINING, QueueState.RUNNING): (Reason.STATE_REQUESTED,),
    (QueueState.DRAINING, QueueState.PAUSED): (Reason.STATE_REQUESTED, *AUTO_PAUSE_REASONS),
    (QueueState.DRAINING, QueueState.SWITCHING_MODES): (Reason.MODE_CHANGED,),
    (QueueState.SWITCHING_MODES, QueueState.RUNNING): (Reason.MODE_SWITCHED,),
    (QueueState.SWITCHING_MODES, QueueState.DRAINING): (Reason.MODE_SWITCHED,),
    (QueueState.SWITCHING_MODES, QueueState.PAUSED): (Reason.STATE_REQUESTED, *AUTO_PAUSE_REASONS),
}

RUN_TRANSITIONS: dict[RunStatus, tuple[RunStatus, ...]] = {
    RunStatus.PREPARING: (RunStatus.IN_PROGRESS, RunStatus.CANCELLED),
    RunStatus.IN_PROGRESS: (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED),
    RunStatus.SUCCEEDED: (),
    RunStatus.FAILED: (),
    RunStatus.CANCELLED: (),
}

_PR_REASONS: dict[tuple[PullRequestState | None, PullRequestState], frozenset[Reason]] = {
    (source, to): frozenset(
        reason for row in PULL_REQUEST_TRANSITIONS if source in row.sources and row.to == to for reason in row.reasons
    )
    for source in (None, *PullRequestState)
    for to in PullRequestState
}


class IllegalTransition(Exception):
    """A change that the tables do not allow. Nothing was changed."""


def check_pull_request_transition(source: PullRequestState | None, to: PullRequestState, reason: Reason) -> None:
    if reason not in _PR_REASONS[source, to]:
        raise IllegalTransition(f"a pull request cannot go from {source} to {to} for {reason}")


def check_queue_transition(source: QueueState, to: QueueState, reason: Reason) -> None:
    if reason not in QUEUE_TRANSITIONS.get((source, to), ()):
        raise IllegalTransition(f"a queue cannot go from {source} to {to} for {reason}")


def check_run_transition(source: RunStatus, to: RunStatus) -> None:
    if to not in RUN_TRANSITIONS[source]:
        raise IllegalTransition(f"a run cannot go from {source} to {to}")
