"""The API requests that the fake GitHub serves."""

import re
from collections.abc import Mapping
from typing import Any, Union
from urllib.parse import unquote

from msgspec import Struct

from tests.support.forges.github import calls, payloads
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.calls import ApiError, Call, Created, Handler, Page
from tests.support.forges.github.description import models as m
from tests.support.forges.github.rules import MergeRefused, merge
from tests.support.forges.github.world import PERMISSION_LEVELS, RegisteredApp


def require_app(call: Call) -> RegisteredApp:
    if call.auth.app is None or not call.caller.is_app:
        raise ApiError(401, "A JSON web token could not be decoded")
    return call.auth.app


def get_app(call: Call) -> Any:
    return payloads.app(require_app(call))


def get_app_by_slug(call: Call) -> Any:
    """Every account can read it; without the permissions that the app has."""
    app = call.auth.find_app_by_slug(call.path_params["slug"])
    if app is None:
        raise ApiError(404)
    return payloads.public_app(app)


def get_app_hook(call: Call) -> Any:
    return payloads.hook_config(next(iter(require_app(call).hooks), None))


def get_installation(call: Call) -> Any:
    app, owner = require_app(call), call.repository.owner
    if owner not in app.installations:
        raise ApiError(404)
    return payloads.installation(app, app.installations[owner], owner)


def get_user(call: Call) -> Any:
    return payloads.user(call.caller.login, call.auth.display_names.get(call.caller.login))


def get_user_by_login(call: Call) -> Any:
    """An app cannot ask with its JWT, only with the token of an installation."""
    login = call.path_params["login"]
    if call.caller.is_app:
        raise ApiError(403, "Resource not accessible by integration")
    if login in call.auth.missing_users:
        raise ApiError(404)
    return payloads.user(login, call.auth.display_names.get(login), call.auth.public_addresses.get(login))


def get_repository(call: Call) -> Any:
    return payloads.repository(call.repository, call.repository.roles.get(call.caller.login))


def get_pull_request(call: Call) -> Any:
    call.repository.count_read(call.pull_request)
    return payloads.pull_request(call.repository, call.pull_request, call.caller)


def list_pull_requests(call: Call) -> Page:
    repository, state, head = call.repository, call.query.get("state", "open"), call.query.get("head")
    found = [
        change for change in repository.pull_requests.values() if state == "all" or change.open == (state == "open")
    ]
    if head:
        found = [change for change in found if head == f"{change.home.partition('/')[0]}:{change.branch}"]
    if base := call.query.get("base"):
        found = [change for change in found if change.base == base]
    updated = call.query.get("sort") == "updated"
    found.sort(key=lambda change: (change.at if updated else 0, change.number), reverse=True)
    return Page([payloads.listed_pull_request(repository, change) for change in call.page(found)], len(found))


def get_ref(call: Call) -> Any:
    return payloads.ref(f"refs/heads/{call.path_params['branch']}", call.tip)


def get_combined_status(call: Call) -> Any:
    sha = resolve_commit(call)
    statuses = list(call.repository.statuses.get(sha, {}).values())
    return payloads.combined_status(call.repository, statuses, call.page(statuses), sha)


def list_statuses(call: Call) -> Page:
    """All, the newest first, with their creators."""
    found = call.repository.status_history.get(resolve_commit(call), [])[::-1]
    return Page([payloads.status(call.repository, one) for one in call.page(found)], len(found))


def list_check_runs(call: Call) -> Any:
    sha = resolve_commit(call)
    runs = call.repository.latest_check_runs(sha)
    return payloads.check_runs(runs, call.page(runs), sha)


def list_check_suites(call: Call) -> Any:
    sha = resolve_commit(call)
    app, suites = call.query.get("app_id"), call.repository.check_suites(sha)
    found = [suite for suite in suites if app in (None, str(suite.app_id))]
    return payloads.check_suites(call.repository, found, call.page(found), sha)


def resolve_commit(call: Call) -> str:
    """The parameter can also be a branch."""
    wanted, repository = call.path_params["sha"], call.repository
    sha = repository.origin.ref(wanted)
    if sha is None or not repository.has_commit(sha):
        raise ApiError(422, f"No commit found for SHA: {wanted}")
    return sha


def list_comments(call: Call) -> Page:
    change, since = call.pull_request, call.query.get("since", "")
    found = [comment for comment in call.repository.comments.values() if comment.number == change.number]
    items = [payloads.comment(comment) for comment in found if payloads.format_time(comment.updated_at) >= since]
    return Page(call.page(items), len(items))


def list_issues(call: Call) -> Page:
    call.repository  # noqa: B018
    return Page([], 0)


def get_permission(call: Call) -> Any:
    """The bot of an app is not a user, so GitHub does not find it."""
    person, repository = call.path_params["person"], call.repository
    if person.endswith("[bot]") or person in call.auth.missing_users:
        raise ApiError(404, f"{person} is not a user")
    role = repository.roles.get(person, "none" if repository.is_private else "read")
    return payloads.permission(person, role, repository.role_names.get(person, role))


def list_hooks(call: Call) -> Page:
    items = call.repository.hooks
    return Page([payloads.hook(hook) for hook in call.page(items)], len(items))


MAX_DESCRIPTION_LENGTH = 140


def create_installation_token(call: Call) -> Any:
    app, installation = require_app(call), int(call.path_params["installation"])
    if app.suspended:
        raise ApiError(403, "This installation has been suspended")
    requested: dict[str, str] | None = call.body.get("permissions")
    if any(
        PERMISSION_LEVELS[level] > PERMISSION_LEVELS[app.permissions.get(name, "none")]
        for name, level in (requested or {}).items()
    ):
        raise ApiError(422, "The permissions requested are not granted to this installation.")
    issued = call.auth.issue_token(installation, _requested_repositories(call, app, installation), requested)
    if issued is None:
        raise ApiError(404)
    return Created(payloads.installation_token(*issued))


def _requested_repositories(call: Call, app: RegisteredApp, installation: int) -> frozenset[str] | None:
    if "repositories" not in call.body:
        return None
    owners = [owner for owner, number in app.installations.items() if number == installation]
    requested = {f"{owner}/{name}".lower() for owner in owners for name in call.body["repositories"]}
    if not requested <= call.repositories.keys():
        raise ApiError(
            422, "There is at least one repository that does not exist or is not accessible to the installation."
        )
    return frozenset(requested)


def merge_pull_request(call: Call) -> Any:
    body = call.body
    message = "\n\n".join(filter(None, [body.get("commit_title", "Merge"), body.get("commit_message")]))
    try:
        commit = merge(
            call.repository,
            call.pull_request,
            body.get("merge_method", "merge"),
            body.get("sha"),
            message,
            call.caller,
        )
    except MergeRefused as error:
        raise ApiError(error.status, error.message) from error
    return payloads.merge_result(commit)


def create_pull_request(call: Call) -> Any:
    repository, body = call.repository, call.body
    refuse_pull_request(repository, repository.name, body["head"], body["base"])
    if body.get("draft") and not repository.drafts_supported:
        raise ApiError(422, "Draft pull requests are not supported in this repository.")
    facts = {"title": body["title"], "base": body["base"], "draft": body.get("draft", False), "text": body["body"]}
    change = repository.open_pull_request(body["head"], author=call.caller.login, **facts)
    return Created(payloads.pull_request(repository, change, call.caller))


def refuse_pull_request(repository: FakeRepository, home: str, head: str, base: str) -> None:
    """Raises if a pull request of these two branches is not possible. `home` has the head."""
    problem = {"resource": "PullRequest", "code": "custom"}
    tips = {field: repository.origin.ref(branch) for field, branch in (("head", head), ("base", base))}
    missing = [problem | {"field": field, "code": "invalid"} for field, tip in tips.items() if tip is None]
    if missing:
        raise ApiError(422, "Validation Failed", errors=missing)
    changes = [change for change in repository.pull_requests.values() if change.open and change.home == home]
    if any((change.branch, change.base) == (head, base) for change in changes):
        message = f"A pull request already exists for {home.partition('/')[0]}:{head}."
        raise ApiError(422, "Validation Failed", errors=[problem | {"message": message}])
    if repository.contains(repository.origin.tip(base), repository.origin.tip(head)):
        message = f"No commits between {base} and {head}"
        raise ApiError(422, "Validation Failed", errors=[problem | {"message": message}])


def update_pull_request(call: Call) -> Any:
    repository, change = call.repository, call.pull_request
    if call.body.get("state") == "closed" and change.open:
        repository.close(change.number)
    if base := call.body.get("base"):
        refuse_pull_request(repository, change.home, change.branch, base)
        repository.edit(change.number, base=base)
    return payloads.pull_request(call.repository, call.pull_request, call.caller)


def create_comment(call: Call) -> Any:
    comment = call.repository.add_comment(call.pull_request.number, call.caller.login, call.body["body"])
    return Created(payloads.comment(comment))


def update_comment(call: Call) -> Any:
    call.repository.edit_comment(call.comment, call.body["body"])
    return payloads.comment(call.comment)


def create_reaction(call: Call) -> Any:
    reaction = (call.caller.login, call.body["content"])
    answer = payloads.reaction(*reaction)
    if reaction in call.comment.reactions:
        return answer
    call.comment.reactions.append(reaction)
    return Created(answer)


def remove_label(call: Call) -> Any:
    label = call.path_params["label"]
    if label not in call.pull_request.labels:
        raise ApiError(404, "Label does not exist")
    call.repository.remove_label(call.pull_request.number, label)
    return [payloads.label(name) for name in call.pull_request.labels]


def create_status(call: Call) -> Any:
    repository, body, sha = call.repository, call.body, call.path_params["sha"]
    if len(body.get("description") or "") > MAX_DESCRIPTION_LENGTH:
        raise ApiError(422, "Validation Failed")
    if not repository.has_commit(sha):
        raise ApiError(422, f"No commit found for SHA: {sha}")
    details: dict[str, Any] = {"url": body.get("target_url"), "description": body.get("description")}
    details |= {"app": call.caller.app_id, "creator": call.caller.login}
    status = repository.report_status(sha, body["context"], body["state"], **details)
    return Created(payloads.status(repository, status))


REPO = "/repos/{owner}/{repo}"
RULES: Any = Union[*payloads.DETAILED_RULES]  # pyright: ignore[reportUnknownVariableType]


class Route(Struct, frozen=True):
    method: str
    path: str
    permission: str
    """Such as `contents:read`; empty if none is needed."""
    handler: Handler
    response_model: Any
    request_model: Any = None

    def match(self, method: str, raw_path: str) -> Mapping[str, str] | None:
        found = re.fullmatch(compile_path(self.path), raw_path) if method == self.method else None
        return found and {name: unquote(word) for name, word in found.groupdict().items()}


def compile_path(path: str) -> str:
    """`{name}` matches one path segment, `{name...}` the rest of the path."""
    return re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.sub(r"\{(\w+)\.\.\.\}", r"(?P<\1>.+)", path))


ROUTES = (
    Route("GET", "/app", "", get_app, m.Integration),
    Route("GET", "/apps/{slug}", "", get_app_by_slug, m.Integration),
    Route("GET", "/app/hook/config", "", get_app_hook, m.WebhookConfig),
    Route(
        "POST", "/app/installations/{installation}/access_tokens", "",
        create_installation_token, m.InstallationToken, m.AppInstallationsInstallationIdAccessTokensPostBody,
    ),
    Route("GET", "/user", "", get_user, m.PublicUser),
    Route("GET", "/users/{login}", "", get_user_by_login, m.PublicUser),
    Route("GET", "/users/{login}/ssh_signing_keys", "", calls.list_ssh_signing_keys, list[m.SshSigningKey]),
    Route("GET", "/users/{login}/gpg_keys", "", calls.list_gpg_keys, list[m.GpgKey]),
    Route("GET", f"{REPO}/installation", "", get_installation, m.Installation),
    Route("GET", REPO, "metadata:read", get_repository, m.FullRepository),
    Route("GET", f"{REPO}/hooks", "repository_hooks:read", list_hooks, list[m.Hook]),
    Route("GET", f"{REPO}/issues", "issues:read", list_issues, list[m.Issue]),
    Route(
        "GET", f"{REPO}/collaborators/{{person}}/permission", "metadata:read",
        get_permission, m.RepositoryCollaboratorPermission,
    ),
    # Branches.
    Route("GET", f"{REPO}/git/ref/heads/{{branch...}}", "contents:read", get_ref, m.GitRef),
    Route("GET", f"{REPO}/branches/{{branch}}", "contents:read", calls.get_branch, m.BranchWithProtection),
    Route("GET", f"{REPO}/rules/branches/{{branch}}", "metadata:read", calls.list_rules, list[RULES]),
    Route("GET", f"{REPO}/rulesets", "metadata:read", calls.list_rulesets, list[m.RepositoryRuleset]),
    Route("GET", f"{REPO}/rulesets/{{ruleset}}", "metadata:read", calls.get_ruleset, m.RepositoryRuleset),
    Route(
        "GET", f"{REPO}/branches/{{branch}}/protection", "administration:read",
        calls.get_protection, m.BranchProtection,
    ),
    Route("GET", f"{REPO}/activity", "contents:read", calls.list_activities, list[m.Activity]),
    # Commits.
    Route("GET", f"{REPO}/commits", "contents:read", calls.list_history, list[m.Commit]),
    Route("GET", f"{REPO}/commits/{{sha}}/status", "statuses:read", get_combined_status, m.CombinedCommitStatus),
    Route(
        "GET", f"{REPO}/commits/{{sha}}/check-runs", "checks:read",
        list_check_runs, m.ReposOwnerRepoCommitsRefCheckRunsGetResponse200,
    ),
    Route("GET", f"{REPO}/commits/{{sha}}/statuses", "statuses:read", list_statuses, list[m.Status]),
    Route(
        "GET", f"{REPO}/commits/{{sha}}/check-suites", "checks:read",
        list_check_suites, m.ReposOwnerRepoCommitsRefCheckSuitesGetResponse200,
    ),
    Route(
        "POST", f"{REPO}/statuses/{{sha}}", "statuses:write",
        create_status, m.Status, m.ReposOwnerRepoStatusesShaPostBody,
    ),
    Route("GET", f"{REPO}/deployments", "deployments:read", calls.list_deployments, list[m.Deployment]),
    Route(
        "GET", f"{REPO}/deployments/{{deployment}}/statuses", "deployments:read",
        calls.list_deployment_statuses, list[m.DeploymentStatus],
    ),
    # Teams.
    Route("GET", "/orgs/{org}/teams", "members:read", calls.list_teams, list[m.Team]),
    Route(
        "GET", "/orgs/{org}/teams/{slug}/members", "members:read",
        calls.list_team_members, list[m.SimpleUser],
    ),
    Route(
        "GET", "/organizations/{org}/team/{team}/members", "members:read",
        calls.list_team_members, list[m.SimpleUser],
    ),
    Route(
        "GET", "/orgs/{org}/teams/{slug}/memberships/{person}", "members:read",
        calls.get_team_membership, m.TeamMembership,
    ),
    # Pull requests.
    Route("GET", f"{REPO}/pulls", "pull_requests:read", list_pull_requests, list[m.PullRequestSimple]),
    Route(
        "POST", f"{REPO}/pulls", "pull_requests:write",
        create_pull_request, m.PullRequest, m.ReposOwnerRepoPullsPostBody,
    ),
    Route("GET", f"{REPO}/pulls/{{number}}", "pull_requests:read", get_pull_request, m.PullRequest),
    Route(
        "PATCH", f"{REPO}/pulls/{{number}}", "pull_requests:write",
        update_pull_request, m.PullRequest, m.ReposOwnerRepoPullsPullNumberPatchBody,
    ),
    Route(
        "GET", f"{REPO}/pulls/{{number}}/reviews", "pull_requests:read",
        calls.list_reviews, list[m.PullRequestReview],
    ),
    Route("GET", f"{REPO}/pulls/{{number}}/commits", "pull_requests:read", calls.list_commits, list[m.Commit]),
    Route("GET", f"{REPO}/pulls/{{number}}/files", "pull_requests:read", calls.list_files, list[m.DiffEntry]),
    Route(
        "PUT", f"{REPO}/pulls/{{number}}/merge", "contents:write",
        merge_pull_request, m.PullRequestMergeResult, m.ReposOwnerRepoPullsPullNumberMergePutBody,
    ),
    # Labels, comments and reactions.
    Route("DELETE", f"{REPO}/issues/{{number}}/labels/{{label}}", "issues:write", remove_label, list[m.Label]),
    Route("GET", f"{REPO}/issues/{{number}}/comments", "issues:read", list_comments, list[m.IssueComment]),
    Route(
        "POST", f"{REPO}/issues/{{number}}/comments", "issues:write",
        create_comment, m.IssueComment, m.ReposOwnerRepoIssuesIssueNumberCommentsPostBody,
    ),
    Route(
        "PATCH", f"{REPO}/issues/comments/{{comment}}", "issues:write",
        update_comment, m.IssueComment, m.ReposOwnerRepoIssuesCommentsCommentIdPatchBody,
    ),
    Route(
        "POST", f"{REPO}/issues/comments/{{comment}}/reactions", "issues:write",
        create_reaction, m.Reaction, m.ReposOwnerRepoIssuesCommentsCommentIdReactionsPostBody,
    ),
)  # fmt: skip
