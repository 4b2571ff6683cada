"""The status of pipelines, who can push, and what prevents a merge, as GitLab decides it."""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import GitRequest, PushRefusal, RefUpdates
from tests.support.forges.gitlab.world import (
    DEVELOPER,
    ApprovalRule,
    CommitStatus,
    MergeRequest,
    Pipeline,
    Project,
    User,
    World,
)
from tests.support.repositories import Origin

FINISHED = ("success", "failed", "canceled", "skipped")
UNFINISHED = ("pending", "running")
CHECKS_REBASE_SINCE = (16, 10)
"""Before, `detailed_merge_status` is `broken_status` for a conflict, does not look at the position of the head, and
reports a pipeline that waits as one that did not pass."""


def pipeline_status(project: Project, pipeline: Pipeline) -> str:
    jobs = [job for job in project.statuses if job.pipeline == pipeline.id and not job.outdated]
    states = {job.status for job in jobs if not (job.allow_failure and job.status in ("failed", "canceled", "manual"))}
    if pipeline.stale_status is not None or not jobs:
        return pipeline.stale_status or pipeline.empty_status
    if states - set(FINISHED):
        return "pending" if states == {"pending"} else "running"
    if states == {"skipped"}:
        return "skipped"
    return next((state for state in ("failed", "canceled") if state in states), "success")


def merge_status(project: Project, request: MergeRequest) -> str:
    if request.undecided in ("checking", "preparing"):
        return "checking"
    if request.undecided == "unchecked":
        return "unchecked"
    return "can_be_merged" if merges_cleanly(project, request) else "cannot_be_merged"


def detailed_merge_status(project: Project, request: MergeRequest) -> str:
    """GitLab reports the first obstacle, in this order, and the same to every account. The pipeline comes last."""
    if request.state != "opened":
        return "not_open"
    if request.undecided not in (None, "approvals_syncing"):
        return request.undecided
    if project.premium and request.changes_requested_by:
        return "requested_changes"
    if request.undecided is not None:
        return request.undecided
    if not is_approved(project, request):
        return "not_approved"
    if set(request.external_checks.values()) - {"passed"}:
        return "status_checks_must_pass"
    if request.obstacle is not None:
        return request.obstacle
    if request.draft:
        return "draft_status"
    if request.unresolved and project.discussions_must_be_resolved:
        return "discussions_not_resolved"
    if not merges_cleanly(project, request):
        return "conflict" if project.version >= CHECKS_REBASE_SINCE else "broken_status"
    if must_be_rebased(project, request) and project.version >= CHECKS_REBASE_SINCE:
        return "need_rebase"
    return (_pipeline_obstacle(project, request) if project.pipelines_must_succeed else None) or "mergeable"


def must_be_rebased(project: Project, request: MergeRequest) -> bool:
    return project.merge_method != "merge" and is_behind(project, request)


def is_squashed(project: Project, request: MergeRequest) -> bool:
    """What GitLab shows as `squash_on_merge`: its own setting, unless the project or the branch decides."""
    overrides = project.branch_squash_options if project.premium else {}
    option = overrides.get(request.target_branch, project.squash_option)
    return option == "always" or (option != "never" and request.squash)


# Approvals


def applicable_rules(project: Project) -> list[ApprovalRule]:
    return project.approval_rules if project.premium else []


def approvers(project: Project, request: MergeRequest, rule: ApprovalRule) -> set[str]:
    """The author's own approval does not count."""
    named = {*rule.users, *(name for members in rule.groups.values() for name in members)}
    if rule.rule_type == "any_approver":
        named = {name for name, level in project.members.items() if level >= DEVELOPER}
    return named - {request.author.username}


def approved_by(project: Project, request: MergeRequest, rule: ApprovalRule) -> list[str]:
    return [name for name in request.approvals if name in approvers(project, request, rule)]


def is_rule_approved(project: Project, request: MergeRequest, rule: ApprovalRule) -> bool:
    """A rule that asks for more approvals than it has approvers is ignored."""
    is_valid = rule.rule_type == "any_approver" or rule.needed <= len(approvers(project, request, rule))
    return not is_valid or len(approved_by(project, request, rule)) >= rule.needed


def approvals_left(project: Project, request: MergeRequest) -> int:
    rules = applicable_rules(project)
    left = {rule.name: max(rule.needed - len(approved_by(project, request, rule)), 0) for rule in rules}
    of_anyone = sum(left[rule.name] for rule in rules if rule.rule_type == "any_approver")
    return max(sum(left.values()) - of_anyone, of_anyone)


def is_approved(project: Project, request: MergeRequest) -> bool:
    return all(is_rule_approved(project, request, rule) for rule in applicable_rules(project))


# Protected branches


def push_access(project: Project, rule: str) -> list[dict[str, int]]:
    return project.push_access.get(rule) or [{"access_level": project.protected[rule]}]


def merge_access(project: Project, rule: str) -> list[dict[str, int]]:
    return project.merge_access.get(rule) or [{"access_level": project.protected[rule]}]


def lets_developers(access: Callable[[Project, str], list[dict[str, int]]], project: Project, branch: str) -> bool:
    """Whether a rule names the role Developer; not so for a branch without a rule."""
    matching = [rule for rule in project.protected if fnmatchcase(branch, rule)]
    return any(each.get("access_level") == DEVELOPER for rule in matching for each in access(project, rule))


def can_push(project: Project, person: User, branch: str) -> bool:
    return _is_granted(project, person, branch, lambda rule: push_access(project, rule))


def can_merge(project: Project, person: User, branch: str) -> bool:
    """An account that can push can also merge."""
    return _is_granted(project, person, branch, lambda rule: push_access(project, rule) + merge_access(project, rule))


def _is_granted(
    project: Project, person: User, branch: str, list_access: Callable[[str], list[dict[str, int]]]
) -> bool:
    """The most permissive of several rules counts; without a rule, every Developer is allowed."""
    level, matching = project.level(person.username), [rule for rule in project.protected if fnmatchcase(branch, rule)]
    if project.archived:
        return False
    if not matching:
        return level >= DEVELOPER
    return any(
        access["user_id"] == person.id
        if "user_id" in access
        else "group_id" not in access and 0 < access["access_level"] <= level
        for rule in matching
        for access in list_access(rule)
    )


def is_protected(project: Project, branch: str) -> bool:
    return any(fnmatchcase(branch, rule) for rule in project.protected)


def allows_collaboration(project: Project, request: MergeRequest) -> bool:
    """GitLab never allows it with a private project, and for a protected source branch."""
    fork = request.fork
    if fork is None or is_protected(fork, request.source_branch):
        return False
    return request.wants_collaboration and "private" not in (project.visibility, fork.visibility)


def can_collaborate(world: World, source: Project, person: User, branch: str | None = None) -> bool:
    """Whether an open merge request lets the account push to this branch of a fork; without a branch: to any."""
    return any(
        request.state == "opened"
        and request.fork is source
        and branch in (None, request.source_branch)
        and allows_collaboration(target, request)
        and can_merge(target, person, request.target_branch)
        for target in world.projects.values()
        for request in target.merge_requests.values()
    )


def has_changes(origin: Origin, target: str, head: str) -> bool:
    base = merge_base(origin, target, head)
    return origin.run("rev-parse", f"{base}^{{tree}}") != origin.run("rev-parse", f"{head}^{{tree}}")


# Pushes

BRANCHES = "refs/heads/"
DEFAULT_BRANCH = "main"
DECLINED = "pre-receive hook declined"


def is_git_allowed(world: World, request: GitRequest) -> bool:
    """Whether the token has access to the repository."""
    token, project = world.tokens.get(request.password), world.stored_at(request.repository)
    if token is None or project is None:
        return False
    if not request.is_write:
        return project.is_visible_to(token.user.username)
    is_writer = project.level(token.user.username) >= DEVELOPER or can_collaborate(world, project, token.user)
    return is_writer and not project.archived


def refuse_push(
    world: World, request: GitRequest, updates: RefUpdates, store_objects: Callable[[], None]
) -> Mapping[str, PushRefusal]:
    """GitLab decides in one hook for the whole push: it declines every ref, and names the first objection only."""
    project, person = world.stored_at(request.repository), world.tokens[request.password].user
    assert project, "the git server allowed the push"
    for ref, (old, new) in updates.items():
        branch = ref.removeprefix(BRANCHES)
        objection = _find_objection(world, project, person, branch)
        if objection is None and new is None and is_protected(project, branch):
            objection = "You can only delete protected branches using the web interface."
        if objection is None and new is not None:
            objection = next(_list_objections_to_commits(world, project, person, ref, old, new, store_objects), None)
        if objection is not None:
            return {each: PushRefusal(DECLINED, [f"GitLab: {objection}"] * (each == ref)) for each in updates}
    return {}


def _find_objection(world: World, project: Project, person: User, branch: str) -> str | None:
    if can_push(project, person, branch) or can_collaborate(world, project, person, branch):
        return None
    if is_protected(project, branch):
        return "You are not allowed to push code to protected branches on this project."
    return "You are not allowed to push code to this project."


def _list_objections_to_commits(
    world: World,
    project: Project,
    person: User,
    ref: str,
    old: Sha | None,
    new: Sha,
    store_objects: Callable[[], None],
) -> Iterator[str]:
    """Commits that any ref contains are not looked at again."""
    origin, branch = project.origin, ref.removeprefix(BRANCHES)
    is_limited = is_protected(project, branch) and old is not None
    rule = (project.push_rule or {}) if project.premium else {}
    if is_limited or rule:
        store_objects()
    allows_force = any(fnmatchcase(branch, rule) for rule in project.force_pushable)
    if is_limited and not allows_force and not contains(origin, new, str(old)):
        yield "You are not allowed to force push code to a protected branch on this project."
    names = str(rule.get("branch_name_regex") or "")
    if branch not in (ref, DEFAULT_BRANCH) and not re.search(names, branch):
        yield f"Branch name '{branch}' does not follow the pattern '{names}'"
    for sha in origin.run("rev-list", new, "--not", "--all").decode().split() if rule else []:
        yield from _list_objections_to_commit(world, origin, person, rule, sha)


def _list_objections_to_commit(
    world: World, origin: Origin, person: User, rule: Mapping[str, str | bool], sha: str
) -> Iterator[str]:
    """In the order and the words of GitLab. Any signature is accepted; releases after 19.2 do not mention GPG."""
    fields = origin.run("log", "-1", "--format=%ae%n%ce%n%an%n%B", sha).decode(errors="replace")
    author, committer, name, message = fields.split("\n", 3)
    required, forbidden, addresses = (
        str(rule.get(each) or "")
        for each in ("commit_message_regex", "commit_message_negative_regex", "author_email_regex")
    )
    if not re.search(required, message, re.MULTILINE):
        yield f"Commit message does not follow the pattern '{required}'"
    if forbidden and re.search(forbidden, message, re.MULTILINE):
        yield f"Commit message contains the forbidden pattern '{forbidden}'"
    for role, address in (("Committer", committer), ("Author", author)):
        if not re.search(addresses, address):
            yield f"{role}'s email '{address}' does not follow the pattern '{addresses}'"
    if rule.get("commit_committer_check") and committer not in world.addresses_of(person):
        yield (
            f"You cannot push commits for '{committer}'. You can only push commits if the committer email is one of "
            "your own verified emails."
        )
    if rule.get("commit_committer_name_check") and author == committer and name != person.name:
        yield "Your git username is inconsistent with GitLab account name"
    if rule.get("reject_non_dco_commits") and not re.search("Signed-off-by:.+<.+@.+>", message):
        yield "Commit message must contain a DCO signoff"
    if rule.get("reject_unsigned_commits") and not is_signed(origin, sha):
        yield "Commit must be signed with a GPG key"
    known = {address for each in world.users.values() for address in world.addresses_of(each)}
    for role, address in (("Author", author), ("Committer", committer)):
        if rule.get("member_check") and address not in known:
            yield f"{role} '{address}' is not a member of team"


def is_signed(origin: Origin, sha: str) -> bool:
    return b"\ngpgsig " in origin.run("cat-file", "commit", sha).partition(b"\n\n")[0]


def merge_base(origin: Origin, one: str, other: str) -> Sha:
    return Sha(origin.run("merge-base", one, other).decode().strip())


def merges_cleanly(project: Project, request: MergeRequest) -> bool:
    target = project.origin.ref(request.target_branch)
    return bool(request.head and target) and project.origin.merged_tree(str(target), str(request.head)) is not None


def is_behind(project: Project, request: MergeRequest) -> bool:
    return not contains(project.origin, str(request.head), project.origin.tip(request.target_branch))


def contains(origin: Origin, commit: str, ancestor: str) -> bool:
    return origin.run("rev-list", "--max-count=1", ancestor, f"^{commit}") == b""


def current_statuses(project: Project, sha: Sha) -> list[CommitStatus]:
    return [one for one in project.statuses if one.sha == sha and not one.outdated]


def can_change_state(old: str, new: str) -> bool:
    """Of an unfinished reported status. A pending one can become anything else, a running one can only finish."""
    return new not in ("pending", old) and not (old == "running" and new == "skipped")


def merge_request_pipelines(project: Project, request: MergeRequest) -> list[tuple[Project, Pipeline]]:
    """Pipelines of the merge request, then those of its source branch; each newest first and with its project."""
    source = request.fork or project
    of_branch = [(source, one) for one in source.pipelines if one.ref == request.source_branch]
    of_request = [
        (home, one) for home in (project, source) for one in home.pipelines if one.merge_request == request.id
    ]
    return [*_newest_first(of_request), *_newest_first(of_branch)]


def _newest_first(found: list[tuple[Project, Pipeline]]) -> list[tuple[Project, Pipeline]]:
    by_id = {pipeline.id: (home, pipeline) for home, pipeline in found}
    return [by_id[number] for number in sorted(by_id, reverse=True)]


def head_pipeline(project: Project, request: MergeRequest) -> tuple[Project, Pipeline] | None:
    """The pipeline that decides whether the merge request can be merged."""
    found = merge_request_pipelines(project, request)
    return next((pair for pair in found if request.head in (pair[1].sha, pair[1].source_sha)), None)


def shown_pipeline(project: Project, request: MergeRequest) -> tuple[Project, Pipeline] | None:
    """GitLab goes on to show the pipeline of an older head while there is none of the new one."""
    return head_pipeline(project, request) or next(iter(merge_request_pipelines(project, request)), None)


def _pipeline_obstacle(project: Project, request: MergeRequest) -> str | None:
    pair = head_pipeline(project, request)
    status = pipeline_status(*pair) if pair else "missing"
    if status == "success" or (status == "skipped" and project.skipped_pipeline_passes):
        return None
    is_old = project.version < CHECKS_REBASE_SINCE
    is_over = status != "running" if is_old else status in (*FINISHED, "missing")
    return "ci_must_pass" if is_over else "ci_still_running"
