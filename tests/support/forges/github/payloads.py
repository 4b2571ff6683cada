"""The JSON payloads of the fake GitHub's API, complete according to GitHub's description."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND, Instant
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.description import check_described, fill_defaults, models
from tests.support.forges.github.rules import MAX_REBASED_COMMITS, mergeability
from tests.support.forges.github.rulesets import Organization, RuleData, Ruleset, find_bypass_mode
from tests.support.forges.github.signatures import is_verified
from tests.support.forges.github.world import (
    Activity,
    BranchProtection,
    Caller,
    CheckRun,
    CheckSuite,
    Comment,
    CommitStatus,
    Deployment,
    Hook,
    PublicApp,
    PullRequest,
    RegisteredApp,
    Review,
    Team,
    to_account_id,
)

Payload = dict[str, Any]
NEAREST_ROLE = {
    "admin": "admin",
    "maintain": "write",
    "write": "write",
    "triage": "read",
    "read": "read",
    "none": "none",
}
RIGHTS = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
ROLES = ("none", *RIGHTS.values())
"""The weakest first."""
AVATARS = "https://avatars.github.example"


def format_time(instant: Instant) -> str:
    return datetime.fromtimestamp(instant // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_optional_time(instant: Instant | None) -> str | None:
    return None if instant is None else format_time(instant)


def repository(repo: FakeRepository, role: str | None) -> Payload:
    owner, _, name = repo.name.partition("/")
    rights = {"admin": role == "admin", "push": role in ("admin", "maintain", "write"), "pull": role is not None}
    facts = {
        "id": repo.id,
        "name": name,
        "full_name": repo.name,
        "private": repo.is_private,
        "owner": _account(owner),
        "default_branch": "main",
        "permissions": rights,
        "allow_merge_commit": "merge" in repo.merge_methods,
        "allow_squash_merge": "squash" in repo.merge_methods,
        "allow_rebase_merge": "rebase" in repo.merge_methods,
    }
    return fill_defaults(models.FullRepository, facts)


def listed_pull_request(repo: FakeRepository, change: PullRequest) -> Payload:
    return fill_defaults(models.PullRequestSimple, _pull_request(repo, change))


def pull_request(repo: FakeRepository, change: PullRequest, viewer: Caller | None = None) -> Payload:
    mergeable, state = mergeability(repo, change, viewer)
    merge_state = {"mergeable": mergeable, "mergeable_state": state, "merged": change.merged is not None}
    merge_state |= {"merged_by": _account(change.merged_by) if change.merged_by else None}
    merge_state |= {"maintainer_can_modify": change.maintainer_can_modify}
    merge_state |= {"commits": change.commits, "rebaseable": mergeable and change.commits <= MAX_REBASED_COMMITS}
    merge_state |= {"changed_files": change.changed_files}
    return fill_defaults(models.PullRequest, _pull_request(repo, change) | merge_state)


def _pull_request(repo: FakeRepository, change: PullRequest) -> Payload:
    closed_at = None if change.open else format_time(change.at)
    return {
        "number": change.number,
        "state": "open" if change.open else "closed",
        "title": change.title,
        "body": change.text,
        "draft": change.draft,
        "user": _account(change.author),
        "requested_reviewers": [_account(one.reviewer) for one in change.review_requests if not one.is_team],
        "requested_teams": [_team(repo, one.reviewer) for one in change.review_requests if one.is_team],
        "labels": [{"name": label, "description": None} for label in change.labels],
        "updated_at": format_time(change.at),
        "closed_at": closed_at,
        "merged_at": closed_at if change.merged else None,
        "merge_commit_sha": change.merged,
        "head": _side(change.home, change.branch, change.head),
        "base": _side(repo.name, change.base, repo.origin.ref(change.base) or Sha("0" * 40)),
    } | _stack(repo, change)


def _stack(repo: FakeRepository, change: PullRequest) -> Payload:
    """Only a pull request of a stack has this member."""
    place = change.stack
    if place is None:
        return {}
    base = {"ref": place.base, "sha": repo.origin.ref(place.base)}
    facts = {"id": place.number, "number": place.number, "size": place.size, "position": place.position}
    return {"stack": facts | {"base": base}}


def _side(home: str, branch: str, sha: Sha) -> Payload:
    owner, _, name = home.partition("/")
    repo = {"name": name, "full_name": home, "owner": _account(owner), "default_branch": "main"}
    return {"label": f"{owner}:{branch}", "ref": branch, "sha": sha, "repo": repo, "user": _account(owner)}


def _account(login: str) -> Payload:
    return {"login": login, "id": to_account_id(login)}


def _team(repo: FakeRepository, name: str) -> Payload:
    slug = name.rpartition("/")[2]
    return {"id": repo.organization.teams[slug].id, "slug": slug, "name": slug}


def branch(repo: FakeRepository, name: str, tip: Sha) -> Payload:
    guard = repo.protections.get(name)
    required = {"enforcement_level": "everyone"} | _classic_checks(guard) if guard else None
    protection = {"enabled": True, "required_status_checks": required} if required else {"enabled": False}
    is_protected = guard is not None or bool(repo.find_rulesets(name))
    facts = {"name": name, "commit": {"sha": tip}, "protected": is_protected, "protection": protection}
    return fill_defaults(models.BranchWithProtection, facts)


def _classic_checks(guard: BranchProtection) -> Payload:
    checks = [{"context": context, "app_id": guard.apps.get(context)} for context in guard.contexts]
    return {"contexts": guard.contexts, "checks": checks} | ({"strict": True} if guard.strict else {})


def rules(repo: FakeRepository, branch: str) -> list[Payload]:
    """The rules of all rulesets over a branch."""
    return [
        _detailed_rule(rule)
        | {
            "ruleset_source_type": ruleset.source_type,
            "ruleset_source": ruleset.source,
            "ruleset_id": ruleset.id,
        }
        for ruleset in repo.find_rulesets(branch)
        for rule in ruleset.rules
    ]


def _detailed_rule(rule: RuleData) -> Payload:
    """A rule that GitHub does not describe stays as it is."""
    kind = RULE_MODELS.get(rule["type"])
    return dict(rule) if kind is None else fill_defaults(kind, rule)


DETAILED_RULES: list[Any] = [
    getattr(models, name) for name in dir(models) if re.fullmatch(r"RepositoryRuleDetailedOneof\d+", name)
]
RULE_MODELS: dict[str, Any] = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in DETAILED_RULES}


def ruleset(repo: FakeRepository, data: Ruleset, viewer: Caller, *, with_rules: bool = True) -> Payload:
    """Only users who can edit the ruleset see who can bypass it. A list of rulesets has no rules."""
    mode = find_bypass_mode(data, repo.organization, repo.roles, viewer)
    facts: Payload = {
        "id": data.id,
        "name": data.name,
        "target": "branch",
        "source_type": data.source_type,
        "source": data.source,
        "enforcement": data.enforcement,
        "current_user_can_bypass": {"pull_request": "pull_requests_only"}.get(mode, mode),
    }
    if not with_rules:
        return fill_defaults(models.RepositoryRuleset, facts)
    everywhere = {"repository_name": {"include": ["~ALL"], "exclude": []}}
    facts["conditions"] = {"ref_name": {"include": data.include, "exclude": data.exclude}} | (
        everywhere if data.source_type == "Organization" else {}
    )
    if can_edit_ruleset(repo, data, viewer):
        facts["bypass_actors"] = [
            {"actor_type": actor.actor_type, "actor_id": actor.actor_id, "bypass_mode": actor.bypass_mode}
            for actor in data.bypass
        ]
    return fill_defaults(models.RepositoryRuleset, facts) | {"rules": [_detailed_rule(rule) for rule in data.rules]}


def can_edit_ruleset(repo: FakeRepository, data: Ruleset, viewer: Caller) -> bool:
    if data.source_type == "Organization":
        is_admin = viewer.login in repo.organization.admins
        return is_admin or (viewer.app_id is not None and viewer.has_permission("organization_administration", "write"))
    is_admin = repo.roles.get(viewer.login) == "admin"
    return is_admin or (viewer.app_id is not None and viewer.has_permission("administration", "write"))


def protection(guard: BranchProtection) -> Payload:
    checks = {"required_status_checks": _classic_checks(guard)} if guard.contexts else {}
    required = {"required_approving_review_count": guard.approvals} | guard.reviews
    apps = [
        {"slug": login.removesuffix("[bot]"), "owner": {"login": "acme"}}
        for login in guard.bypass
        if login.endswith("[bot]")
    ]
    people = [{"login": login} for login in guard.bypass if not login.endswith("[bot]")]
    allowed = {"bypass_pull_request_allowances": {"users": people, "teams": [], "apps": apps}} if guard.bypass else {}
    reviews = {"required_pull_request_reviews": required | allowed} if guard.approvals or guard.reviews else {}
    admins = {"enforce_admins": {"url": "-", "enabled": guard.enforce_admins}}
    return fill_defaults(models.BranchProtection, {"enabled": True} | checks | reviews | admins | guard.other_rules)


def ref(name: str, sha: Sha) -> Payload:
    return fill_defaults(models.GitRef, {"ref": name, "object": {"type": "commit", "sha": sha}})


def combined_status(repo: FakeRepository, statuses: list[CommitStatus], shown: list[CommitStatus], sha: str) -> Payload:
    """Does not name the creators."""
    listed = [_status(repo, one) for one in shown]
    facts = {"sha": sha, "state": "pending", "total_count": len(statuses), "statuses": listed}
    return fill_defaults(models.CombinedCommitStatus, facts)


def status(repo: FakeRepository, reported: CommitStatus) -> Payload:
    app = None if reported.app is None else repo.organization.auth.find_app(reported.app)
    creator = _account(app.bot if app else reported.creator) | {"type": "Bot" if app else "User"}
    return fill_defaults(models.Status, _status(repo, reported) | {"creator": creator})


def _status(repo: FakeRepository, reported: CommitStatus) -> Payload:
    app = None if reported.app is None else repo.organization.auth.find_app(reported.app)
    avatar = app.avatar_path if app else f"u/{to_account_id(reported.creator)}"
    return {
        "id": reported.id,
        "context": reported.context,
        "state": reported.state,
        "target_url": reported.url,
        "description": reported.description,
        "avatar_url": f"{AVATARS}/{avatar}?v=4",
        "created_at": format_time(reported.at),
        "updated_at": format_time(reported.at),
    }


def check_runs(runs: list[CheckRun], shown: list[CheckRun], sha: str) -> Payload:
    facts = {"total_count": len(runs), "check_runs": [_check_run(run, sha) for run in shown]}
    return fill_defaults(models.ReposOwnerRepoCommitsRefCheckRunsGetResponse200, facts)


def _check_run(run: CheckRun, sha: str) -> Payload:
    return {
        "id": run.id,
        "name": run.name,
        "head_sha": sha,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": format_optional_time(run.started_at),
        "completed_at": format_optional_time(run.completed_at),
        "details_url": run.url,
        "output": {"title": run.title},
        "app": {"id": run.app_id, "name": run.app},
        "check_suite": {"id": run.suite},
    }


def check_suites(repo: FakeRepository, suites: list[CheckSuite], shown: list[CheckSuite], sha: str) -> Payload:
    facts = {"total_count": len(suites), "check_suites": [_check_suite(repo, suite, sha) for suite in shown]}
    return fill_defaults(models.ReposOwnerRepoCommitsRefCheckSuitesGetResponse200, facts)


def _check_suite(repo: FakeRepository, suite: CheckSuite, sha: str) -> Payload:
    return {
        "id": suite.id,
        "head_sha": sha,
        "status": suite.status,
        "conclusion": suite.conclusion,
        "app": {"id": suite.app_id, "slug": repo.organization.auth.find_app(suite.app_id).slug, "name": suite.app},
        "latest_check_runs_count": suite.runs,
        "created_at": format_time(suite.at),
        "updated_at": format_time(suite.at),
    }


def comment(source: Comment) -> Payload:
    facts = {
        "id": source.id,
        "body": source.body,
        "user": {"login": source.author} if source.author else None,
    }
    times = {"created_at": format_time(source.created_at), "updated_at": format_time(source.updated_at)}
    return fill_defaults(models.IssueComment, facts | times)


def reaction(person: str, content: str) -> Payload:
    return fill_defaults(models.Reaction, {"user": {"login": person}, "content": content})


def label(name: str) -> Payload:
    return fill_defaults(models.Label, {"name": name})


def review(data: Review) -> Payload:
    user = _account(data.user) if data.user else None
    facts = {"id": data.id, "user": user, "state": data.state, "commit_id": data.commit}
    return fill_defaults(models.PullRequestReview, facts | {"submitted_at": format_time(data.at)})


def changed_file(status: str, path: str, old_path: str) -> Payload:
    facts = {"filename": path, "status": status} | ({"previous_filename": old_path} if old_path else {})
    return fill_defaults(models.DiffEntry, facts)


def activity(data: Activity) -> Payload:
    facts = {"id": data.id, "ref": data.ref, "before": data.before, "after": data.after, "activity_type": data.kind}
    actor = _account(data.actor) if data.actor else None
    return fill_defaults(models.Activity, facts | {"actor": actor, "timestamp": format_time(data.at)})


def commit(repo: FakeRepository, sha: str) -> Payload:
    is_signed = is_verified(repo, sha)
    verification = {"verified": is_signed, "reason": "valid" if is_signed else "unsigned"}
    facts = {"sha": sha, "commit": {"verification": verification}}
    return fill_defaults(models.Commit, facts)


def ssh_signing_key(line: str) -> Payload:
    return fill_defaults(models.SshSigningKey, {"key": line})


def gpg_key(fingerprint: str, address: str) -> Payload:
    emails = [{"email": address, "verified": True}]
    return fill_defaults(models.GpgKey, {"key_id": fingerprint[-16:], "emails": emails})


def deployment(data: Deployment) -> Payload:
    facts: Payload = {"id": data.id, "sha": data.sha, "environment": data.environment, "payload": {}}
    return fill_defaults(models.Deployment, facts)


def deployment_status(data: Deployment, state: str) -> Payload:
    return fill_defaults(models.DeploymentStatus, {"state": state, "environment": data.environment})


def team(data: Team) -> Payload:
    return fill_defaults(models.Team, {"id": data.id, "slug": data.slug, "name": data.slug, "parent": None})


def member(login: str) -> Payload:
    return fill_defaults(models.SimpleUser, _account(login))


def membership(organization: Organization, slug: str, login: str) -> Payload | None:
    team = organization.teams.get(slug)
    if team is None or login not in team.members:
        return None
    return fill_defaults(models.TeamMembership, {"role": "member", "state": "active"})


def permission(person: str, role: str, role_name: str) -> Payload:
    """The rights in `user` are those of the role that a custom role is built on."""
    rights = {name: ROLES.index(role) >= ROLES.index(least) for name, least in RIGHTS.items()}
    user = _account(person) | {"type": "User", "permissions": rights, "role_name": role_name}
    facts = {"permission": NEAREST_ROLE[role], "role_name": role_name, "user": user}
    return fill_defaults(models.RepositoryCollaboratorPermission, facts)


def merge_result(commit: Sha) -> Payload:
    message = "Pull Request successfully merged"
    return fill_defaults(models.PullRequestMergeResult, {"sha": commit, "merged": True, "message": message})


def app(data: RegisteredApp) -> Payload:
    facts = {
        "id": int(data.id),
        "slug": data.slug,
        "name": data.slug,
        "permissions": data.permissions,
        "events": data.events,
    }
    return fill_defaults(models.Integration, facts | {"owner": {"login": "acme"}})


def public_app(data: PublicApp) -> Payload:
    return fill_defaults(
        models.Integration, {"id": data.id, "slug": data.slug, "name": data.slug, "owner": {"login": data.owner}}
    )


def installation(data: RegisteredApp, number: int, owner: str) -> Payload:
    suspended = format_optional_time(Instant(0)) if data.suspended else None
    facts = {"id": number, "account": {"login": owner}, "permissions": data.permissions, "suspended_at": suspended}
    return fill_defaults(models.Installation, facts | {"events": data.events})


def installation_token(token: str, until: Instant) -> Payload:
    return fill_defaults(models.InstallationToken, {"token": token, "expires_at": format_time(until)})


def hook_config(hook: Hook | None) -> Payload:
    facts = {"url": hook.url, "content_type": hook.content_type, "secret": "********"} if hook else {}
    return fill_defaults(models.WebhookConfig, facts)


def hook(data: Hook) -> Payload:
    facts = {"events": data.events, "active": data.active, "config": hook_config(data)}
    return fill_defaults(models.Hook, facts)


def user(login: str, name: str | None = None, address: str | None = None) -> Payload:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return fill_defaults(models.PublicUser, _account(login) | {"name": name, "email": address, "type": kind})


def error(
    status: int, message: str, errors: Sequence[Mapping[str, str]] = (), headers: Mapping[str, str] | None = None
) -> Payload:
    facts: Payload = {"message": message, "documentation_url": "https://docs.github.com/rest"}
    if errors:
        return check_described(models.ValidationError, facts | {"errors": list(errors)})
    moved = {"url": headers["location"]} if headers and "location" in headers else {}
    return check_described(models.BasicError, facts | moved | {"status": str(status)})
