"""One API request, and the kinds of responses."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.github import payloads
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.description import models as m
from tests.support.forges.github.rules import MergeRefused, merge
from tests.support.forges.github.world import (
    PERMISSION_LEVELS,
    Authentication,
    Caller,
    Comment,
    PullRequest,
    RegisteredApp,
)

MAX_PAGE_SIZE = 100
T = TypeVar("T")


class ApiError(Exception):
    """An error response."""

    def __init__(self, status: int, message: str = "Not Found") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Call(Struct, frozen=True, kw_only=True):
    caller: Caller
    auth: Authentication
    repositories: Mapping[str, FakeRepository]
    path_params: Mapping[str, str]
    """Path parameters by name."""
    query: Mapping[str, str]
    body: Any

    @property
    def repository(self) -> FakeRepository:
        """Case is ignored; a repository that the caller cannot see counts as missing."""
        name = f"{self.path_params['owner']}/{self.path_params['repo']}".lower()
        repository = self.repositories.get(name)
        if repository is None or not (self.caller.is_app or self.caller.can_see(name)):
            raise ApiError(404)
        return repository

    @property
    def pull_request(self) -> PullRequest:
        return self._find(self.repository.pull_requests, int(self.path_params["number"]))

    @property
    def comment(self) -> Comment:
        return self._find(self.repository.comments, int(self.path_params["comment"]))

    @property
    def tip(self) -> Sha:
        found = self.repository.origin.ref(self.path_params["branch"])
        if found is None:
            raise ApiError(404, "Branch not found")
        return found

    def page(self, items: Sequence[T]) -> list[T]:
        size = min(int(self.query.get("per_page", "30")), MAX_PAGE_SIZE)
        first = (int(self.query.get("page", "1")) - 1) * size
        return list(items[first : first + size])

    def _find(self, items: Mapping[int, T], number: int) -> T:
        if number not in items:
            raise ApiError(404)
        return items[number]


class Page(Struct, frozen=True):
    """One page of a list, with the total length."""

    items: list[Any]
    total: int


class Created(Struct, frozen=True):
    content: Any


Handler = Callable[[Call], Any]


def require_app(call: Call) -> RegisteredApp:
    if call.auth.app is None or not call.caller.is_app:
        raise ApiError(401, "A JSON web token could not be decoded")
    return call.auth.app


def get_app(call: Call) -> Any:
    return payloads.app(require_app(call))


def get_app_hook(call: Call) -> Any:
    return payloads.hook_config(next(iter(require_app(call).hooks), None))


def get_installation(call: Call) -> Any:
    app, owner = require_app(call), call.repository.owner
    if owner not in app.installations:
        raise ApiError(404)
    return payloads.installation(app, app.installations[owner], owner)


def get_user(call: Call) -> Any:
    return payloads.user(call.caller.login)


def get_repository(call: Call) -> Any:
    return payloads.repository(call.repository, call.repository.roles.get(call.caller.login))


def get_pull_request(call: Call) -> Any:
    return payloads.pull_request(call.repository, call.pull_request)


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


def list_reviews(call: Call) -> Page:
    items = call.pull_request.reviews
    return Page([payloads.review(user, opinion) for user, opinion in call.page(items)], len(items))


def get_branch(call: Call) -> Any:
    return payloads.branch(call.repository, call.path_params["branch"], call.tip)


def get_ref(call: Call) -> Any:
    return payloads.ref(f"refs/heads/{call.path_params['branch']}", call.tip)


def list_rules(call: Call) -> Page:
    items = payloads.rules(call.repository, call.path_params["branch"])
    return Page(call.page(items), len(items))


def get_ruleset(call: Call) -> Any:
    number, repository = int(call.path_params["ruleset"]), call.repository
    guards = {payloads.RULESET: repository.rulesets, payloads.UPDATE_RULESET: repository.update_rulesets}.get(
        number, {}
    )
    guard = next(iter(guards.values()), None)
    if guard is None:
        raise ApiError(404)
    login = call.caller.login
    return payloads.ruleset(repository, number, guard, login, edits=repository.roles.get(login) == "admin")


def get_protection(call: Call) -> Any:
    guard = call.repository.protections.get(call.path_params["branch"])
    if guard is None:
        raise ApiError(404, "Branch not protected")
    return payloads.protection(guard)


def get_combined_status(call: Call) -> Any:
    sha = resolve_commit(call)
    statuses = list(call.repository.statuses.get(sha, {}).values())
    return payloads.combined_status(statuses, call.page(statuses), sha)


def list_check_runs(call: Call) -> Any:
    sha = resolve_commit(call)
    runs = call.repository.latest_check_runs(sha)
    return payloads.check_runs(runs, call.page(runs), sha)


def resolve_commit(call: Call) -> str:
    """The parameter can also be a branch."""
    return call.repository.origin.tip(call.path_params["sha"])


def list_comments(call: Call) -> Page:
    change, since = call.pull_request, call.query.get("since", "")
    found = [comment for comment in call.repository.comments.values() if comment.number == change.number]
    items = [payloads.comment(comment) for comment in found if payloads.format_time(comment.updated_at) >= since]
    return Page(call.page(items), len(items))


def list_issues(call: Call) -> Page:
    call.repository  # noqa: B018
    return Page([], 0)


def get_permission(call: Call) -> Any:
    person = call.path_params["person"]
    return payloads.permission(person, call.repository.roles.get(person, "read"))


def list_hooks(call: Call) -> Page:
    items = call.repository.hooks
    return Page([payloads.hook(hook) for hook in call.page(items)], len(items))


def find_open_pull_request(call: Call, branch: str) -> PullRequest | None:
    changes = call.repository.pull_requests.values()
    return next((change for change in changes if change.open and change.branch == branch), None)


MAX_DESCRIPTION_LENGTH = 140


def create_installation_token(call: Call) -> Any:
    app, installation = require_app(call), int(call.path_params["installation"])
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
        commit = merge(call.repository, call.pull_request, body.get("merge_method", "merge"), body.get("sha"), message)
    except MergeRefused as error:
        raise ApiError(error.status, error.message) from error
    return payloads.merge_result(commit)


def create_pull_request(call: Call) -> Any:
    repository, body = call.repository, call.body
    if repository.origin.ref(body["head"]) is None or repository.origin.ref(body["base"]) is None:
        raise ApiError(422, "Validation Failed")
    if find_open_pull_request(call, body["head"]):
        raise ApiError(422, "A pull request already exists")
    facts = {"title": body["title"], "base": body["base"], "draft": body.get("draft", False), "text": body["body"]}
    return Created(
        payloads.pull_request(repository, repository.open_pull_request(body["head"], author=call.caller.login, **facts))
    )


def update_pull_request(call: Call) -> Any:
    if call.body.get("state") == "closed":
        call.repository.close(call.pull_request.number)
    return payloads.pull_request(call.repository, call.pull_request)


def create_comment(call: Call) -> Any:
    comment = call.repository.add_comment(call.pull_request.number, call.caller.login, call.body["body"])
    return Created(payloads.comment(comment))


def update_comment(call: Call) -> Any:
    call.comment.body = call.body["body"]
    call.comment.updated_at = call.repository.clock.now()
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
    object_info = repository.origin.run("cat-file", "--batch-check", stdin=sha.encode())
    if b" commit " not in object_info:
        raise ApiError(422, f"No commit found for SHA: {sha}")
    details = {"url": body.get("target_url"), "description": body.get("description")}
    status = repository.report_status(sha, body["context"], body["state"], **details)
    return Created(payloads.status(status))


REPO = "/repos/{owner}/{repo}"
RULES = (
    m.RepositoryRuleDetailedOneof1
    | m.RepositoryRuleDetailedOneof6
    | m.RepositoryRuleDetailedOneof7
    | m.RepositoryRuleDetailedOneof8
)


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
    Route("GET", "/app/hook/config", "", get_app_hook, m.WebhookConfig),
    Route(
        "POST", "/app/installations/{installation}/access_tokens", "",
        create_installation_token, m.InstallationToken, m.AppInstallationsInstallationIdAccessTokensPostBody,
    ),
    Route("GET", "/user", "", get_user, m.PublicUser),
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
    Route("GET", f"{REPO}/branches/{{branch}}", "contents:read", get_branch, m.BranchWithProtection),
    Route("GET", f"{REPO}/rules/branches/{{branch}}", "metadata:read", list_rules, list[RULES]),
    Route("GET", f"{REPO}/rulesets/{{ruleset}}", "metadata:read", get_ruleset, m.RepositoryRuleset),
    Route(
        "GET", f"{REPO}/branches/{{branch}}/protection", "administration:read",
        get_protection, m.BranchProtection,
    ),
    # Commits.
    Route("GET", f"{REPO}/commits/{{sha}}/status", "statuses:read", get_combined_status, m.CombinedCommitStatus),
    Route(
        "GET", f"{REPO}/commits/{{sha}}/check-runs", "checks:read",
        list_check_runs, m.ReposOwnerRepoCommitsRefCheckRunsGetResponse200,
    ),
    Route(
        "POST", f"{REPO}/statuses/{{sha}}", "statuses:write",
        create_status, m.Status, m.ReposOwnerRepoStatusesShaPostBody,
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
    Route("GET", f"{REPO}/pulls/{{number}}/reviews", "pull_requests:read", list_reviews, list[m.PullRequestReview]),
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
