"""The JSON payloads of the fake GitHub's API, complete according to GitHub's description."""

from datetime import UTC, datetime
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND, Instant
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.description import fill_defaults, models
from tests.support.forges.github.rules import mergeability
from tests.support.forges.github.world import (
    BranchProtection,
    CheckRun,
    Comment,
    CommitStatus,
    Hook,
    PullRequest,
    RegisteredApp,
)

Payload = dict[str, Any]
RULESET, UPDATE_RULESET = 31, 32
RULESETS = {RULESET: "reviews and checks", UPDATE_RULESET: "only the queue updates"}
NEAREST_ROLE = {"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read"}


def format_time(instant: Instant) -> str:
    return datetime.fromtimestamp(instant // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_optional_time(instant: Instant | None) -> str | None:
    return None if instant is None else format_time(instant)


def repository(repo: FakeRepository, role: str | None) -> Payload:
    owner, _, name = repo.name.partition("/")
    rights = {"admin": role == "admin", "push": role in ("admin", "maintain", "write"), "pull": role is not None}
    facts = {
        "name": name,
        "full_name": repo.name,
        "owner": {"login": owner},
        "default_branch": "main",
        "permissions": rights,
        "allow_merge_commit": "merge" in repo.merge_methods,
        "allow_squash_merge": "squash" in repo.merge_methods,
        "allow_rebase_merge": "rebase" in repo.merge_methods,
    }
    return fill_defaults(models.FullRepository, facts)


def listed_pull_request(repo: FakeRepository, change: PullRequest) -> Payload:
    return fill_defaults(models.PullRequestSimple, _pull_request(repo, change))


def pull_request(repo: FakeRepository, change: PullRequest) -> Payload:
    mergeable, state = mergeability(repo, change)
    merge_state = {"mergeable": mergeable, "mergeable_state": state, "merged": change.merged is not None}
    return fill_defaults(models.PullRequest, _pull_request(repo, change) | merge_state)


def _pull_request(repo: FakeRepository, change: PullRequest) -> Payload:
    closed_at = None if change.open else format_time(change.at)
    return {
        "number": change.number,
        "state": "open" if change.open else "closed",
        "title": change.title,
        "body": change.text,
        "draft": change.draft,
        "user": {"login": change.author},
        "labels": [{"name": label, "description": None} for label in change.labels],
        "updated_at": format_time(change.at),
        "closed_at": closed_at,
        "merged_at": closed_at if change.merged else None,
        "merge_commit_sha": change.merged,
        "head": _side(change.home, change.branch, change.head),
        "base": _side(repo.name, change.base, repo.origin.ref(change.base) or Sha("0" * 40)),
    }


def _side(home: str, branch: str, sha: Sha) -> Payload:
    owner, _, name = home.partition("/")
    repo = {"name": name, "full_name": home, "owner": {"login": owner}}
    return {"label": f"{owner}:{branch}", "ref": branch, "sha": sha, "repo": repo, "user": {"login": owner}}


def branch(repo: FakeRepository, name: str, tip: Sha) -> Payload:
    guard = repo.protections.get(name)
    checks = [{"context": context, "app_id": guard.apps.get(context)} for context in guard.contexts] if guard else []
    required = {"enforcement_level": "everyone", "contexts": guard.contexts, "checks": checks} if guard else None
    protection = {"enabled": True, "required_status_checks": required} if required else {"enabled": False}
    facts = {"name": name, "commit": {"sha": tip}, "protected": guard is not None, "protection": protection}
    return fill_defaults(models.BranchWithProtection, facts)


def rules(repo: FakeRepository, branch: str) -> list[Payload]:
    restricted = {"type": "update", "ruleset_id": UPDATE_RULESET}
    found = [fill_defaults(models.RepositoryRuleDetailedOneof1, restricted)] if branch in repo.update_rulesets else []
    guard = repo.rulesets.get(branch)
    return found if guard is None else [*found, *_rules_of(guard)]


def _rules_of(guard: BranchProtection) -> list[Payload]:
    source = {"ruleset_source_type": "Repository", "ruleset_source": "acme/app", "ruleset_id": RULESET}
    app_of = {context: {"integration_id": app} for context, app in guard.apps.items()}
    checks = [{"context": context} | app_of.get(context, {}) for context in guard.contexts]
    statuses = {"type": "required_status_checks", "parameters": {"required_status_checks": checks}}
    parameters = {"required_approving_review_count": guard.approvals} | guard.reviews
    return [
        fill_defaults(models.RepositoryRuleDetailedOneof8, statuses | source),
        fill_defaults(models.RepositoryRuleDetailedOneof7, {"type": "pull_request", "parameters": parameters} | source),
        *({"type": kind} | source for kind in guard.other_rules),
    ]


def ruleset(repo: FakeRepository, number: int, guard: BranchProtection, login: str, *, edits: bool) -> Payload:
    """Only users who can edit the ruleset see who can bypass it."""
    mode = {"pull_request": "pull_requests_only"}.get(
        guard.bypass.get(login, "never"), guard.bypass.get(login, "never")
    )
    actors = [
        {
            "actor_type": "Integration" if bypass_login.endswith("[bot]") else "User",
            "actor_id": 1,
            "bypass_mode": bypass,
        }
        for bypass_login, bypass in guard.bypass.items()
    ]
    facts = {"id": number, "name": RULESETS[number], "source": repo.name, "current_user_can_bypass": mode}
    return fill_defaults(
        models.RepositoryRuleset, facts | {"enforcement": "active"} | ({"bypass_actors": actors} if edits else {})
    )


def protection(guard: BranchProtection) -> Payload:
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
    return fill_defaults(models.BranchProtection, {"enabled": True} | reviews | admins | guard.other_rules)


def ref(name: str, sha: Sha) -> Payload:
    return fill_defaults(models.GitRef, {"ref": name, "object": {"type": "commit", "sha": sha}})


def combined_status(statuses: list[CommitStatus], shown: list[CommitStatus], sha: str) -> Payload:
    facts = {"sha": sha, "state": "pending", "total_count": len(statuses), "statuses": [_status(one) for one in shown]}
    return fill_defaults(models.CombinedCommitStatus, facts)


def status(reported: CommitStatus) -> Payload:
    return fill_defaults(models.Status, _status(reported))


def _status(reported: CommitStatus) -> Payload:
    return {
        "context": reported.context,
        "state": reported.state,
        "target_url": reported.url,
        "description": reported.description,
        "avatar_url": f"https://avatars.github.example/in/{reported.app}?v=4" if reported.app else None,
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


def review(person: str, opinion: str) -> Payload:
    user = {"login": person} if person else None
    return fill_defaults(models.PullRequestReview, {"user": user, "state": opinion})


def permission(person: str, role: str) -> Payload:
    facts = {"permission": NEAREST_ROLE[role], "role_name": role, "user": {"login": person}}
    return fill_defaults(models.RepositoryCollaboratorPermission, facts)


def merge_result(commit: Sha) -> Payload:
    message = "Pull Request successfully merged"
    return fill_defaults(models.PullRequestMergeResult, {"sha": commit, "merged": True, "message": message})


def app(data: RegisteredApp) -> Payload:
    facts = {"slug": data.slug, "name": data.slug, "permissions": data.permissions, "events": data.events}
    return fill_defaults(models.Integration, facts | {"owner": {"login": "acme"}})


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


def user(login: str) -> Payload:
    return fill_defaults(models.PublicUser, {"login": login})


def error(message: str) -> Payload:
    return fill_defaults(models.BasicError, {"message": message, "documentation_url": "https://docs.github.com/rest"})
