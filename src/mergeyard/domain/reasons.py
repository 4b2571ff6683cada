"""Why something changed or waits: one word for journal, answer, metric and page, and one sentence for people."""

from enum import StrEnum


class Reason(StrEnum):
    # A pull request entered, moved on or was merged.
    SUBMITTED = "submitted"
    READY = "ready"
    TEST_RUN_STARTED = "test_run_started"
    TEST_RUN_PASSED = "test_run_passed"
    SUCCESSOR_PASSED = "successor_passed"
    MERGED_BY_QUEUE = "merged_by_queue"
    MERGED_DIRECTLY = "merged_directly"
    MERGED_MANUALLY = "merged_manually"
    TREE_MISMATCH = "tree_mismatch"
    # It failed.
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
    START_REFUSED = "start_refused"
    MERGE_REFUSED = "merge_refused"
    # It was taken out.
    CANCELLED_BY_USER = "cancelled_by_user"
    PR_CLOSED = "pr_closed"
    PR_PUSHED = "pr_pushed"
    PR_BASE_CHANGED = "pr_base_changed"
    PR_CONVERTED_TO_DRAFT = "pr_converted_to_draft"
    NOT_READY_TIMEOUT = "not_ready_timeout"
    LANDING_UNKNOWN = "landing_unknown"
    # It is tested again, or has to become ready again.
    PREREQUISITE_REMOVED = "prerequisite_removed"
    TARGET_BRANCH_MOVED = "target_branch_moved"
    SKIP_THE_LINE_INTERRUPTED = "skip_the_line_interrupted"
    BATCHMATE_REMOVED = "batchmate_removed"
    BISECTION = "bisection"
    BISECTION_PASSED = "bisection_passed"
    MODE_SWITCHED = "mode_switched"
    QUEUE_RESUMED = "queue_resumed"
    TESTS_RESTARTED = "tests_restarted"
    REQUIRED_STATUSES_CHANGED = "required_statuses_changed"
    NO_LONGER_MERGEABLE = "no_longer_mergeable"
    # It waits.
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
    # The queue itself changed.
    STATE_REQUESTED = "state_requested"
    MODE_CHANGED = "mode_changed"
    SETTINGS_CHANGED = "settings_changed"
    LANDING_REFUSED = "landing_refused"
    AUDIT_MISMATCH = "audit_mismatch"


MESSAGES: dict[Reason, str] = {
    Reason.SUBMITTED: "It was submitted to the queue.",
    Reason.READY: "It is ready and stands in the queue.",
    Reason.TEST_RUN_STARTED: "A test run with it has started.",
    Reason.TEST_RUN_PASSED: "All required statuses passed; it merges as soon as everything it stands on has.",
    Reason.SUCCESSOR_PASSED: "A run behind it, which holds its changes too, passed.",
    Reason.MERGED_BY_QUEUE: "The queue merged it, as it was tested.",
    Reason.MERGED_DIRECTLY: "It stood on the tip with all statuses passed, and was merged without a run.",
    Reason.MERGED_MANUALLY: "It was merged outside the queue.",
    Reason.TREE_MISMATCH: "What landed is not what was tested: compare the target with the run before you resume.",
    Reason.TEST_RUN_FAILED: "A required status failed with its changes: repair it and submit it again.",
    Reason.TEST_RUN_TIMEOUT: "Its tests did not finish in time: see which status is missing, and submit it again.",
    Reason.FAILED_BY_OPTIMIZATION: "The batch was red with it and green without it: repair it and submit it again.",
    Reason.MERGE_CONFLICT: "It conflicts with the target branch: bring it up to date and submit it again.",
    Reason.CONTAINS_REMOVED_COMMIT: "It holds a commit that was removed from the target: rebase it without.",
    Reason.NOTHING_TO_MERGE: "It changes nothing on the target branch: close it, or push what it should change.",
    Reason.PR_TOO_LARGE: "It is over a limit of the queue: squash its commits or split it, and submit it again.",
    Reason.INVALID_TREE: "Git refuses files that it brings: take them out of all its commits and submit it again.",
    Reason.NO_REQUIRED_STATUSES: "No required status is known, and nothing merges untested: name some in the settings.",
    Reason.CONFIG_INVALID: "The repository's .mergeyard.toml cannot be read: repair it on the target branch.",
    Reason.BREAKS_CONFIG: "It breaks .mergeyard.toml: repair the file in the pull request and submit it again.",
    Reason.START_REFUSED: "The host refuses its test branch for good: see the host's words.",
    Reason.MERGE_REFUSED: "The host refuses to merge it: see the host's words.",
    Reason.CANCELLED_BY_USER: "It was taken out of the queue.",
    Reason.PR_CLOSED: "It was closed.",
    Reason.PR_PUSHED: "It got new commits: submit it again to have them tested.",
    Reason.PR_BASE_CHANGED: "It was pointed at another branch.",
    Reason.PR_CONVERTED_TO_DRAFT: "It became a draft: submit it again when it is ready.",
    Reason.NOT_READY_TIMEOUT: "It was not ready for too long: submit it again when it is.",
    Reason.LANDING_UNKNOWN: "Nobody can tell whether it was merged: look at the target before you submit it again.",
    Reason.PREREQUISITE_REMOVED: "Something it was tested upon left the queue; it is tested again without it.",
    Reason.TARGET_BRANCH_MOVED: "The target branch moved; it is tested again on the new tip.",
    Reason.SKIP_THE_LINE_INTERRUPTED: "An urgent pull request passed it; it is tested again behind that one.",
    Reason.BATCHMATE_REMOVED: "A pull request of its batch left; the rest is tested again.",
    Reason.BISECTION: "Its batch failed, and the guilty one is sought.",
    Reason.BISECTION_PASSED: "It is not the guilty one of its batch.",
    Reason.MODE_SWITCHED: "The queue changed its mode; what had not merged is tested again.",
    Reason.QUEUE_RESUMED: "Its tests failed while the queue was paused; they run again.",
    Reason.TESTS_RESTARTED: "Its tests were restarted.",
    Reason.REQUIRED_STATUSES_CHANGED: "More statuses are required than it was tested with; it is tested again.",
    Reason.NO_LONGER_MERGEABLE: "The host no longer calls it mergeable.",
    Reason.BASE_BRANCH_MISMATCH: "It points at another branch than this queue: change its base branch.",
    Reason.DRAFT: "It is a draft: mark it as ready.",
    Reason.NOT_MERGEABLE: "The host calls it not mergeable: resolve its conflicts or what protects the branch.",
    Reason.MERGEABILITY_UNKNOWN: "The host has not said yet whether it can be merged.",
    Reason.MISSING_IMPACTED_TARGETS: "Its impacted targets are not known: upload them for its present head.",
    Reason.WAITING_FOR_MAINTAINER: "It comes from a fork and changes guarded paths: a maintainer has to submit it.",
    Reason.QUEUE_PAUSED: "The queue is paused.",
    Reason.QUEUE_DRAINING: "The queue is draining and takes nothing new.",
    Reason.SWITCHING_MODES: "The queue is changing its mode.",
    Reason.WAITING_FOR_SLOT: "All test slots are taken.",
    Reason.WAITING_FOR_BATCH: "It waits for its batch to fill.",
    Reason.WAITING_FOR_CHECKS: "Its checks have not all reported.",
    Reason.WAITING_FOR_PRS_AHEAD: "It waits for the pull requests ahead of it.",
    Reason.WAITING_FOR_PRS_BEHIND: "Its tests failed, but a run behind it may still show that it is good.",
    Reason.WAITING_FOR_BASE: "The target branch itself is tested before anyone is blamed.",
    Reason.BASE_BROKEN: "The target branch fails its own tests: whatever repairs it goes first.",
    Reason.CONFLICTS_WITH_PR_AHEAD: "It conflicts with pull requests ahead of it and waits until they are gone.",
    Reason.TARGET_BRANCH_MISSING: "The target branch does not exist: create it or delete the queue.",
    Reason.PROVIDER_UNAVAILABLE: "The host does not answer; the queue goes on when it does.",
    Reason.STATE_REQUESTED: "Somebody asked for it.",
    Reason.MODE_CHANGED: "The queue's mode was changed.",
    Reason.SETTINGS_CHANGED: "The queue's settings were changed.",
    Reason.LANDING_REFUSED: "The host refused to move the target branch: read its words, then resume.",
    Reason.AUDIT_MISMATCH: "The target is not as it was recorded: compare what is named here before you resume.",
}


class Refusal(StrEnum):
    """Why a request changed nothing; each is an error code of the API."""

    PR_NOT_SUBMITTED = "pr_not_submitted"
    PR_ALREADY_MERGED = "pr_already_merged"
    PR_CLOSED = "pr_closed"
    MERGE_IN_PROGRESS = "merge_in_progress"
    TESTS_NOT_RUNNING = "tests_not_running"
    MODE_SWITCH_IN_PROGRESS = "mode_switch_in_progress"
