"""Judges pull requests by the rules of a branch, for each viewer, and merges, with GitHub's messages.

The same judgment of the rules decides `mergeable_state`, `reviewDecision` and which merges GitHub refuses. What
violates a rule does not depend on the viewer; who can bypass it does.
"""

import subprocess

from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Identity
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.rulesets import (
    EXTRA_APPROVAL,
    RuleData,
    Ruleset,
    find_bypass_mode,
    matches_glob,
    to_classic_rules,
)
from tests.support.forges.github.signatures import is_verified
from tests.support.forges.github.world import BranchProtection, Caller, PullRequest, Review
from tests.support.forges.host_rebase import EVERY_COMMIT_AGAIN, rebase
from tests.support.repositories import ENVIRONMENT

COMMITTER = Identity("GitHub", "github@example.org")
WRITERS = {"admin", "maintain", "write"}
PASSED = {"success", "neutral", "skipped"}
OPINIONS = {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}
METHOD_NAMES = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
FOR_PUSHES = frozenset(
    {"creation", "deletion", "non_fast_forward", "required_linear_history", "merge_queue", "branch_name_pattern",
     "tag_name_pattern", "commit_message_pattern", "commit_author_email_pattern", "committer_email_pattern"}
)  # fmt: skip
"""Rules that an open pull request does not violate; they can still refuse a push or a merge method."""
REVIEW_PARAMETERS = frozenset(
    {"required_approving_review_count", "require_code_owner_review", "require_last_push_approval",
     "required_review_thread_resolution", "dismiss_stale_reviews_on_push", "required_reviewers",
     "allowed_merge_methods", "dismissal_restriction", EXTRA_APPROVAL}
)  # fmt: skip


COPILOT = "Copilot"
MAX_REBASED_COMMITS = 100
STACK_REFUSAL = "Merging stacked PRs via this endpoint is not supported. Use the asynchronous merge endpoint instead."


class MergeRefused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Guard(Struct, frozen=True):
    """A ruleset or the classic protection, over one branch."""

    rules: list[RuleData]
    ruleset: Ruleset | None = None
    protection: BranchProtection | None = None

    def bypass_mode(self, repository: FakeRepository, kind: str, viewer: Caller | None) -> str:
        """In which mode the viewer bypasses a rule of this kind; None is an account without any bypass."""
        if viewer is None:
            return "never"
        if self.ruleset is not None:
            return find_bypass_mode(self.ruleset, repository.organization, repository.roles, viewer)
        assert self.protection is not None
        if repository.roles.get(viewer.login) == "admin" and not self.protection.enforce_admins:
            return "exempt"
        if kind == "pull_request" and viewer.login in self.protection.bypass:
            return "always"
        pushers = self.protection.other_rules.get("restrictions", {}).get("users", [])
        return "exempt" if kind == "restrictions" and viewer.login in [one["login"] for one in pushers] else "never"


class Violation(Struct, frozen=True):
    guard: Guard
    kind: str
    message: str


def find_guards(repository: FakeRepository, branch: str) -> list[Guard]:
    classic = repository.protections.get(branch)
    found = [Guard(to_classic_rules(classic), protection=classic)] if classic else []
    return [*found, *(Guard(ruleset.rules, ruleset) for ruleset in repository.find_rulesets(branch))]


def find_violations(repository: FakeRepository, change: PullRequest) -> list[Violation]:
    return [
        Violation(guard, rule["type"], message)
        for guard in find_guards(repository, change.base)
        for rule in guard.rules
        for message in judge(repository, change, rule)
    ]


# Pull requests


def mergeability(
    repository: FakeRepository, change: PullRequest, viewer: Caller | None = None
) -> tuple[bool | None, str]:
    """`mergeable` and `mergeable_state`, as the viewer sees them."""
    if not change.open or repository.origin.ref(change.base) is None:
        return None, "unknown"
    if change.being_checked > 0:
        change.being_checked -= 1
        return None, "unknown"
    if merged_tree(repository, change) is None:
        return False, "dirty"
    if change.draft:
        return True, "draft"
    if any(not looks_clean(repository, violation, viewer) for violation in find_violations(repository, change)):
        return True, "blocked"
    if is_behind(repository, change):
        return True, "behind"
    return True, "clean" if not has_failing_status(repository, change) else "unstable"


def looks_clean(repository: FakeRepository, violation: Violation, viewer: Caller | None) -> bool:
    """Whether GitHub hides the violation from this viewer. Reports about the mode `always` differ: it is a switch."""
    hides = {"never": False, "pull_request": False, "always": repository.always_looks_clean, "exempt": True}
    return hides[violation.guard.bypass_mode(repository, violation.kind, viewer)]


def judge(repository: FakeRepository, change: PullRequest, rule: RuleData) -> list[str]:
    """How an open pull request violates a rule. A rule of an unknown kind is violated until a test satisfies it."""
    kind, parameters = rule["type"], rule.get("parameters", {})
    match kind:
        case "pull_request":
            unknown = sorted(name for name, value in parameters.items() if value and name not in REVIEW_PARAMETERS)
            found = judge_reviews(repository, change, parameters) + judge_required_reviewers(
                repository, change, parameters
            )
            found += judge_same_head(repository, change) if requires_reviews(parameters) else []
            found += [f"Rule {name} is violated." for name in unknown if name not in repository.satisfied_rules]
            return found + (judge_threads(change) if parameters.get("required_review_thread_resolution") else [])
        case "required_conversation_resolution":
            return judge_threads(change)
        case "required_status_checks":
            return judge_checks(repository, change.head, parameters)
        case "required_deployments":
            missing = [
                environment
                for environment in parameters["required_deployment_environments"]
                if not is_deployed(repository, change.head, environment)
            ]
            return [f"Missing successful active {environment} deployment." for environment in missing]
        case "required_signatures":
            unsigned = [sha for sha in repository.list_commits(change) if not is_verified(repository, sha)]
            return ["Commits must have verified signatures."] if unsigned else []
        case "update":
            return ["Cannot update this protected ref."]
        case "restrictions":
            return ["You're not authorized to push to this branch."]
        case _:
            is_satisfied = kind in FOR_PUSHES or kind in repository.satisfied_rules
            return [] if is_satisfied else [f"Rule {kind} is violated."]


def judge_reviews(repository: FakeRepository, change: PullRequest, parameters: RuleData) -> list[str]:
    """Without the required reviewers."""
    if not requires_reviews(parameters):
        return []
    opinions = find_opinions(repository, change)
    found = ["Changes were requested."] if any(one.state == "CHANGES_REQUESTED" for one in opinions.values()) else []
    approving = find_approvers(repository, change)
    needed = count_needed(change, parameters)
    if len(approving) < needed:
        found.append(f"At least {needed} approving review is required by reviewers with write access.")
    if parameters.get("require_code_owner_review") and find_missing_owners(repository, change):
        found.append("Waiting on code owner review.")
    on_head = {user for user in approving if opinions[user].commit == change.head}
    if parameters.get("require_last_push_approval") and not on_head - {change.last_pusher}:
        found.append("New changes require approval from someone other than the last pusher.")
    return found


def requires_reviews(parameters: RuleData) -> bool:
    names = ("required_approving_review_count", "require_code_owner_review", "require_last_push_approval")
    return any(parameters.get(name) for name in (*names, "required_reviewers"))


def count_needed(change: PullRequest, parameters: RuleData) -> int:
    """One more for what Copilot opened without a person."""
    count = parameters.get("required_approving_review_count", 0)
    is_unattributed = change.author == COPILOT and not change.is_for_person
    return count + int(count > 0 and is_unattributed and bool(parameters.get(EXTRA_APPROVAL)))


def judge_same_head(repository: FakeRepository, change: PullRequest) -> list[str]:
    """Another open pull request with the same head has rejected or pending reviews. No document says whether the
    decision about reviews shows that, and without it the decision is the more dangerous one."""
    same = [each for each in repository.pull_requests.values() if each.open and each.head == change.head]
    others = [each for each in same if each is not change]
    opinions = [one for each in others for one in find_opinions(repository, each).values()]
    if any(one.state == "CHANGES_REQUESTED" for one in opinions):
        return ["Changes were requested on another pull request with this commit."]
    if any(review_decision(repository, each) == "REVIEW_REQUIRED" for each in others):
        return ["Another pull request with this commit requires a review."]
    return []


def judge_required_reviewers(repository: FakeRepository, change: PullRequest, parameters: RuleData) -> list[str]:
    approving, found = find_approvers(repository, change), list[str]()
    configurations: list[RuleData] = parameters.get("required_reviewers") or []
    for required in configurations:
        team = repository.organization.find_team(required["reviewer"]["id"])
        patterns: list[str] = required["file_patterns"]
        if not any(matches_glob(each, path) for each in patterns for path in repository.changed_paths(change)):
            continue
        if len(approving & (team.members if team else set[str]())) < required["minimum_approvals"]:
            found.append("Waiting on required reviewers.")
    return found


def judge_threads(change: PullRequest) -> list[str]:
    unresolved = any(not thread.is_resolved for thread in change.threads)
    return ["A conversation must be resolved before this pull request can be merged."] if unresolved else []


def judge_checks(repository: FakeRepository, sha: Sha, parameters: RuleData) -> list[str]:
    """An app of -1 or none means any source."""
    required = [(check["context"], check.get("integration_id")) for check in parameters["required_status_checks"]]
    missing = [context for context, app in required if not has_passed(repository, sha, context, app)]
    return [f'Required status check "{context}" is expected.' for context in missing]


def review_decision(repository: FakeRepository, change: PullRequest) -> str | None:
    """The same for every viewer; None where no rule requires reviews. Required reviewers count only with the switch: no
    document says whether they do, and without them the decision is the more dangerous one."""
    rules = [rule for guard in find_guards(repository, change.base) for rule in guard.rules]
    of_reviews = [rule.get("parameters", {}) for rule in rules if rule["type"] == "pull_request"]
    if not any(requires_reviews(parameters) for parameters in of_reviews):
        return None
    if any(one.state == "CHANGES_REQUESTED" for one in find_opinions(repository, change).values()):
        return "CHANGES_REQUESTED"
    missing = [message for parameters in of_reviews for message in judge_reviews(repository, change, parameters)]
    if repository.decision_counts_required_reviewers:
        missing += [each for one in of_reviews for each in judge_required_reviewers(repository, change, one)]
    return "REVIEW_REQUIRED" if missing else "APPROVED"


def find_opinions(repository: FakeRepository, change: PullRequest) -> dict[str, Review]:
    """The last opinion of each user with write access."""
    opinions = {review.user: review for review in change.reviews if review.state in OPINIONS}
    return {user: review for user, review in opinions.items() if repository.roles.get(user) in WRITERS}


def find_approvers(repository: FakeRepository, change: PullRequest) -> set[str]:
    return {user for user, review in find_opinions(repository, change).items() if review.state == "APPROVED"}


def find_missing_owners(repository: FakeRepository, change: PullRequest) -> list[list[str]]:
    """For each changed file whose owners have not approved: its owners."""
    approving, organization = find_approvers(repository, change), repository.organization
    owners = [repository.find_code_owners(path) for path in repository.changed_paths(change)]
    return [each for each in owners if each and not any(organization.members_of(one) & approving for one in each)]


def has_passed(repository: FakeRepository, sha: Sha, context: str, app: int | None) -> bool:
    """Whether there are results of this name and all passed. The name of a commit status has no case."""
    reported, wanted = repository.statuses.get(sha, {}).values(), context.lower()
    statuses = [status for status in reported if status.context.lower() == wanted]
    runs = [run for run in repository.latest_check_runs(sha) if run.name == context]
    results = [status.state == "success" for status in statuses if app in (None, -1, status.app)]
    results += [run.conclusion in PASSED for run in runs if app in (None, -1, run.app_id)]
    return bool(results) and all(results)


def is_deployed(repository: FakeRepository, sha: Sha, environment: str) -> bool:
    found = [each for each in repository.deployments if (each.sha, each.environment) == (sha, environment)]
    return bool(found) and found[-1].states[-1] == "success"


def is_behind(repository: FakeRepository, change: PullRequest) -> bool:
    rules = [rule for guard in find_guards(repository, change.base) for rule in guard.rules]
    return any(map(is_strict, rules)) and lacks_base(repository, change)


def is_strict(rule: RuleData) -> bool:
    """Without required checks the setting has no effect."""
    parameters = rule.get("parameters", {})
    return bool(parameters.get("strict_required_status_checks_policy") and parameters["required_status_checks"])


def lacks_base(repository: FakeRepository, change: PullRequest) -> bool:
    return not repository.contains(change.head, repository.origin.tip(change.base))


def has_failing_status(repository: FakeRepository, change: PullRequest) -> bool:
    states = {status.state for status in repository.statuses.get(change.head, {}).values()}
    return bool(states - {"success"})


# Merges


def merge(
    repository: FakeRepository,
    change: PullRequest,
    method: str,
    expected: str | None,
    message: str,
    viewer: Caller | None = None,
) -> Sha:
    """The viewer merges, and can bypass rules in every mode but `never`."""
    if change.stack is not None:
        raise MergeRefused(403, STACK_REFUSAL)
    if expected is not None and expected != change.head:
        raise MergeRefused(409, "Head branch was modified. Review and try the merge again.")
    if method not in repository.merge_methods:
        raise MergeRefused(405, f"{METHOD_NAMES[method]} are not allowed on this repository.")
    tree = merged_tree(repository, change) if change.open and not change.draft else None
    if tree is None:
        raise MergeRefused(405, "Pull Request is not mergeable")
    rebased = _rebase(repository, change) if method == "rebase" else None
    if method == "rebase" and rebased is None:
        raise MergeRefused(405, "This branch can't be rebased")
    found = find_violations(repository, change) + _find_method_violations(repository, change, method)
    found += _find_outdated(repository, change)
    binding = [one for one in found if one.guard.bypass_mode(repository, one.kind, viewer) == "never"]
    if binding:
        heading = ["Repository rule violations found"] if binding[0].guard.ruleset else []
        raise MergeRefused(405, "\n\n".join([*heading, binding[0].message]))
    landed = rebased or _commit(repository, change, method, tree, message)
    return _land(repository, change, landed, viewer)


def _find_method_violations(repository: FakeRepository, change: PullRequest, method: str) -> list[Violation]:
    def judge_method(rule: RuleData) -> str | None:
        match rule["type"]:
            case "required_linear_history" if method == "merge":
                return "This branch must not contain merge commits."
            case "merge_queue":
                return "Changes must be made through the merge queue."
            case "pull_request" if method not in (rule["parameters"].get("allowed_merge_methods") or [method]):
                return f"{METHOD_NAMES[method]} are not allowed on this branch."
            case _:
                return None

    guards = find_guards(repository, change.base)
    found = [(guard, rule["type"], judge_method(rule)) for guard in guards for rule in guard.rules]
    return [Violation(guard, kind, message) for guard, kind, message in found if message]


def _find_outdated(repository: FakeRepository, change: PullRequest) -> list[Violation]:
    """A strict rule expects its checks again while the head lacks the tip of the base branch."""
    found = [
        (guard, len(rule["parameters"]["required_status_checks"]))
        for guard in find_guards(repository, change.base)
        for rule in guard.rules
        if is_strict(rule)
    ]
    if not found or not lacks_base(repository, change):
        return []
    return [
        Violation(guard, "required_status_checks", f"{checks} of {checks} required status checks are expected.")
        for guard, checks in found
    ]


def merged_tree(repository: FakeRepository, change: PullRequest) -> str | None:
    return repository.origin.merged_tree(repository.origin.tip(change.base), change.head)


def _rebase(repository: FakeRepository, change: PullRequest) -> Sha | None:
    """Every commit keeps its message, and gets a new SHA. GitHub does not document what becomes of a commit whose patch
    was there before: here it is applied again."""
    if change.commits > MAX_REBASED_COMMITS:
        return None
    origin = repository.origin
    return rebase(origin, origin.tip(change.base), change.head, COMMITTER, EVERY_COMMIT_AGAIN)


def _commit(repository: FakeRepository, change: PullRequest, method: str, tree: str, message: str) -> Sha:
    origin, base = repository.origin, repository.origin.tip(change.base)
    parents = ["-p", base, *(("-p", change.head) if method == "merge" else ())]
    author = {"GIT_AUTHOR_NAME": change.author, "GIT_AUTHOR_EMAIL": f"{change.author}@example.org"}
    command = ["git", "--git-dir", origin.url, "commit-tree", tree, *parents, "-m", message]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT | author)
    return Sha(result.stdout.decode().strip())


def _land(repository: FakeRepository, change: PullRequest, commit: Sha, viewer: Caller | None) -> Sha:
    origin, base = repository.origin, repository.origin.tip(change.base)
    origin.set_ref(change.base, commit)
    by = viewer.login if viewer else change.author
    repository.mark_merged(change, commit, by)
    repository.on_push({f"refs/heads/{change.base}": (base, commit)}, by)
    return commit
