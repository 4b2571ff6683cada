"""Refuses pushes by the rules of a branch and by the permissions of the viewer, with GitHub's messages."""

import re
from collections.abc import Callable

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import PushRefusal
from tests.support.forges.github.actions import BRANCH_PREFIX, FakeRepository
from tests.support.forges.github.rules import find_guards, judge_checks
from tests.support.forges.github.rulesets import PUSH_MODES, RuleData
from tests.support.forges.github.signatures import describe_unverified, list_unverified
from tests.support.forges.github.world import Caller

WORKFLOWS = ".github/workflows/"


def refuse_push(
    repository: FakeRepository,
    ref: str,
    before: Sha | None,
    after: Sha | None,
    viewer: Caller,
    unpack: Callable[[], None],
) -> PushRefusal | None:
    """`unpack` makes the pushed objects readable; it is called only where a rule needs them."""
    branch = ref.removeprefix(BRANCH_PREFIX)
    if branch == ref:
        return None
    if after is not None and not viewer.has_permission("workflows", "write"):
        unpack()
        if path := _find_new_workflow(repository, after):
            owner = "GitHub App" if viewer.app_id is not None else "Personal Access Token"
            right = "`workflows` permission" if viewer.app_id is not None else "`workflow` scope"
            reason = f"refusing to allow a {owner} to create or update workflow `{path}` without {right}"
            return PushRefusal(reason, [])
    for guard in find_guards(repository, branch):
        rules = [rule for rule in guard.rules if guard.bypass_mode(repository, rule["type"], viewer) not in PUSH_MODES]
        if rules and after is not None:
            unpack()
        found = [_judge_push(repository, rule, branch, before, after) for rule in rules]
        messages = [f"- {message}" for message in found if message]
        if messages and guard.ruleset is not None:
            heading = f"error: GH013: Repository rule violations found for {ref}."
            return PushRefusal("push declined due to repository rule violations", [heading, "", *messages, ""])
        if messages:
            heading = f"error: GH006: Protected branch update failed for {ref}."
            return PushRefusal("protected branch hook declined", [heading, "", *messages])
    return None


def _find_new_workflow(repository: FakeRepository, after: Sha) -> str | None:
    """A workflow file that no branch has with the same path and content. Such a file is no change of workflows."""
    tips = {tip for ref, tip in repository.origin.refs().items() if ref.startswith(BRANCH_PREFIX)}
    known = {entry for tip in tips for entry in repository.list_tree(tip, WORKFLOWS)}
    return next((path for path, blob in repository.list_tree(after, WORKFLOWS) if (path, blob) not in known), None)


def _judge_push(
    repository: FakeRepository, rule: RuleData, branch: str, before: Sha | None, after: Sha | None
) -> str | None:
    kind, parameters = rule["type"], rule.get("parameters", {})
    if after is None:
        return "Cannot delete this branch" if kind in ("deletion", "lock_branch") else None
    if kind == "branch_name_pattern" and before is None and not matches_name(parameters, branch):
        return "Branch name must match the pattern of a rule"
    if kind == "creation" and before is None:
        return "Cannot create ref due to creations being restricted."
    if kind == "required_signatures":
        known = ["--not", "--branches"] if before is None else [f"^{before}"]
        return describe_unverified(list_unverified(repository, after, *known))
    if before is None and parameters.get("do_not_enforce_on_create"):
        return None
    if kind == "required_status_checks":
        return next(iter(judge_checks(repository, after, parameters)), None)
    if kind == "workflows" and kind not in repository.satisfied_rules:
        return next((f"Required workflow '{each['path']}' is not satisfied" for each in parameters["workflows"]), None)
    if before is None:
        return None
    match kind:
        case "update":
            return "Cannot update this protected ref."
        case "lock_branch":
            return "Cannot change this locked branch"
        case "restrictions":
            return "You're not authorized to push to this branch."
        case "pull_request":
            return "Changes must be made through a pull request."
        case "merge_queue":
            return "Changes must be made through the merge queue"
        case "non_fast_forward" if not repository.contains(after, before):
            return "Cannot force-push to this branch"
        case "required_linear_history" if repository.origin.run("rev-list", "--merges", f"{before}..{after}"):
            return "This branch must not contain merge commits."
        case _:
            return None


def matches_name(parameters: RuleData, branch: str) -> bool:
    pattern = parameters["pattern"]
    found = {
        "starts_with": branch.startswith(pattern),
        "ends_with": branch.endswith(pattern),
        "contains": pattern in branch,
        "regex": parameters["operator"] == "regex" and re.search(pattern, branch) is not None,
    }[parameters["operator"]]
    return found is not parameters.get("negate", False)
