"""What the fake says about what there is: whole answers, as GitHub describes them."""

from datetime import UTC, datetime
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import SECOND, Instant
from tests.support.forges.github.description import filled, models
from tests.support.forges.github.facts import AppFacts, Change, Guard, Hook, Ran, Reported, Said
from tests.support.forges.github.merging import judged
from tests.support.forges.github.repository import FakeRepository

Answer = dict[str, Any]
RULESET, UPDATE_RULESET = 31, 32
RULESETS = {RULESET: "reviews and checks", UPDATE_RULESET: "only the queue updates"}
NEAREST_ROLE = {"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read"}


def time(instant: Instant) -> str:
    return datetime.fromtimestamp(instant // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def optional_time(instant: Instant | None) -> str | None:
    return None if instant is None else time(instant)


def repository(kept: FakeRepository, role: str | None) -> Answer:
    owner, _, name = kept.name.partition("/")
    rights = {"admin": role == "admin", "push": role in ("admin", "maintain", "write"), "pull": role is not None}
    facts = {
        "name": name,
        "full_name": kept.name,
        "owner": {"login": owner},
        "default_branch": "main",
        "permissions": rights,
        "allow_merge_commit": "merge" in kept.methods,
        "allow_squash_merge": "squash" in kept.methods,
        "allow_rebase_merge": "rebase" in kept.methods,
    }
    return filled(models.FullRepository, facts)


def listed_pull(kept: FakeRepository, change: Change) -> Answer:
    return filled(models.PullRequestSimple, _pull(kept, change))


def pull(kept: FakeRepository, change: Change) -> Answer:
    mergeable, state = judged(kept, change)
    opinion = {"mergeable": mergeable, "mergeable_state": state, "merged": change.merged is not None}
    return filled(models.PullRequest, _pull(kept, change) | opinion)


def _pull(kept: FakeRepository, change: Change) -> Answer:
    over = None if change.open else time(change.at)
    return {
        "number": change.number,
        "state": "open" if change.open else "closed",
        "title": change.title,
        "body": change.text,
        "draft": change.draft,
        "user": {"login": change.author},
        "labels": [{"name": label, "description": None} for label in change.labels],
        "updated_at": time(change.at),
        "closed_at": over,
        "merged_at": over if change.merged else None,
        "merge_commit_sha": change.merged,
        "head": _side(change.home, change.branch, change.head),
        "base": _side(kept.name, change.base, kept.origin.ref(change.base) or Sha("0" * 40)),
    }


def _side(home: str, branch: str, sha: Sha) -> Answer:
    owner, _, name = home.partition("/")
    place = {"name": name, "full_name": home, "owner": {"login": owner}}
    return {"label": f"{owner}:{branch}", "ref": branch, "sha": sha, "repo": place, "user": {"login": owner}}


def branch(kept: FakeRepository, name: str, tip: Sha) -> Answer:
    guard = kept.guards.get(name)
    checks = [{"context": context, "app_id": guard.apps.get(context)} for context in guard.contexts] if guard else []
    required = {"enforcement_level": "everyone", "contexts": guard.contexts, "checks": checks} if guard else None
    protection = {"enabled": True, "required_status_checks": required} if required else {"enabled": False}
    facts = {"name": name, "commit": {"sha": tip}, "protected": guard is not None, "protection": protection}
    return filled(models.BranchWithProtection, facts)


def rules(kept: FakeRepository, branch: str) -> list[Answer]:
    restricted = {"type": "update", "ruleset_id": UPDATE_RULESET}
    found = [filled(models.RepositoryRuleDetailedOneof1, restricted)] if branch in kept.update_rulesets else []
    guard = kept.rulesets.get(branch)
    return found if guard is None else [*found, *_rules_of(guard)]


def _rules_of(guard: Guard) -> list[Answer]:
    whose = {"ruleset_source_type": "Repository", "ruleset_source": "acme/app", "ruleset_id": RULESET}
    tied = {context: {"integration_id": app} for context, app in guard.apps.items()}
    checks = [{"context": context} | tied.get(context, {}) for context in guard.contexts]
    statuses = {"type": "required_status_checks", "parameters": {"required_status_checks": checks}}
    wanted = {"required_approving_review_count": guard.approvals} | guard.reviews
    return [
        filled(models.RepositoryRuleDetailedOneof8, statuses | whose),
        filled(models.RepositoryRuleDetailedOneof7, {"type": "pull_request", "parameters": wanted} | whose),
        *({"type": kind} | whose for kind in guard.further),
    ]


def ruleset(kept: FakeRepository, number: int, guard: Guard, login: str, *, edits: bool) -> Answer:
    """Who else can bypass it is shown only to those who may edit it."""
    mode = {"pull_request": "pull_requests_only"}.get(
        guard.bypass.get(login, "never"), guard.bypass.get(login, "never")
    )
    actors = [
        {"actor_type": "Integration" if known.endswith("[bot]") else "User", "actor_id": 1, "bypass_mode": bypass}
        for known, bypass in guard.bypass.items()
    ]
    facts = {"id": number, "name": RULESETS[number], "source": kept.name, "current_user_can_bypass": mode}
    return filled(
        models.RepositoryRuleset, facts | {"enforcement": "active"} | ({"bypass_actors": actors} if edits else {})
    )


def protection(guard: Guard) -> Answer:
    wanted = {"required_approving_review_count": guard.approvals} | guard.reviews
    apps = [
        {"slug": login.removesuffix("[bot]"), "owner": {"login": "acme"}}
        for login in guard.bypass
        if login.endswith("[bot]")
    ]
    people = [{"login": login} for login in guard.bypass if not login.endswith("[bot]")]
    allowed = {"bypass_pull_request_allowances": {"users": people, "teams": [], "apps": apps}} if guard.bypass else {}
    reviews = {"required_pull_request_reviews": wanted | allowed} if guard.approvals or guard.reviews else {}
    admins = {"enforce_admins": {"url": "-", "enabled": guard.enforce_admins}}
    return filled(models.BranchProtection, {"enabled": True} | reviews | admins | guard.further)


def ref(name: str, sha: Sha) -> Answer:
    return filled(models.GitRef, {"ref": name, "object": {"type": "commit", "sha": sha}})


def combined(statuses: list[Reported], shown: list[Reported], sha: str) -> Answer:
    facts = {"sha": sha, "state": "pending", "total_count": len(statuses), "statuses": [_status(one) for one in shown]}
    return filled(models.CombinedCommitStatus, facts)


def status(reported: Reported) -> Answer:
    return filled(models.Status, _status(reported))


def _status(reported: Reported) -> Answer:
    return {
        "context": reported.context,
        "state": reported.state,
        "target_url": reported.url,
        "description": reported.description,
        "avatar_url": f"https://avatars.github.example/in/{reported.app}?v=4" if reported.app else None,
        "created_at": time(reported.at),
        "updated_at": time(reported.at),
    }


def check_runs(runs: list[Ran], shown: list[Ran], sha: str) -> Answer:
    facts = {"total_count": len(runs), "check_runs": [_check_run(run, sha) for run in shown]}
    return filled(models.ReposOwnerRepoCommitsRefCheckRunsGetResponse200, facts)


def _check_run(run: Ran, sha: str) -> Answer:
    return {
        "id": run.id,
        "name": run.name,
        "head_sha": sha,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": optional_time(run.started_at),
        "completed_at": optional_time(run.completed_at),
        "details_url": run.url,
        "output": {"title": run.title},
        "app": {"id": run.app_id, "name": run.app},
        "check_suite": {"id": run.suite},
    }


def comment(said: Said) -> Answer:
    facts = {"id": said.id, "body": said.text, "user": {"login": said.author} if said.author else None}
    times = {"created_at": time(said.said_at), "updated_at": time(said.changed_at)}
    return filled(models.IssueComment, facts | times)


def reaction(person: str, content: str) -> Answer:
    return filled(models.Reaction, {"user": {"login": person}, "content": content})


def label(name: str) -> Answer:
    return filled(models.Label, {"name": name})


def review(person: str, opinion: str) -> Answer:
    user = {"login": person} if person else None
    return filled(models.PullRequestReview, {"user": user, "state": opinion})


def permission(person: str, role: str) -> Answer:
    facts = {"permission": NEAREST_ROLE[role], "role_name": role, "user": {"login": person}}
    return filled(models.RepositoryCollaboratorPermission, facts)


def merge_result(commit: Sha) -> Answer:
    words = "Pull Request successfully merged"
    return filled(models.PullRequestMergeResult, {"sha": commit, "merged": True, "message": words})


def app(known: AppFacts) -> Answer:
    facts = {"slug": known.slug, "name": known.slug, "permissions": known.permissions, "events": known.events}
    return filled(models.Integration, facts | {"owner": {"login": "acme"}})


def installation(known: AppFacts, number: int, owner: str) -> Answer:
    suspended = optional_time(Instant(0)) if known.suspended else None
    facts = {"id": number, "account": {"login": owner}, "permissions": known.permissions, "suspended_at": suspended}
    return filled(models.Installation, facts | {"events": known.events})


def installation_token(token: str, until: Instant) -> Answer:
    return filled(models.InstallationToken, {"token": token, "expires_at": time(until)})


def hook_config(hook: Hook | None) -> Answer:
    facts = {"url": hook.address, "content_type": hook.content_type, "secret": "********"} if hook else {}
    return filled(models.WebhookConfig, facts)


def hook(known: Hook) -> Answer:
    facts = {"events": known.events, "active": known.active, "config": hook_config(known)}
    return filled(models.Hook, facts)


def user(login: str) -> Answer:
    return filled(models.PublicUser, {"login": login})


def words(message: str) -> Answer:
    return filled(models.BasicError, {"message": message, "documentation_url": "https://docs.github.com/rest"})
