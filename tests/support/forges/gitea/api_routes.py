"""One API request, and the table of routes."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, convert, field, structs

from mergeyard.domain.ids import Sha
from tests.support.forges.gitea import payloads
from tests.support.forges.gitea.actions import Actions
from tests.support.forges.gitea.payloads import Payload, Payloads
from tests.support.forges.gitea.rules import (
    changed_files,
    check_merge_permission,
    check_merge_readiness,
    is_verified,
    latest_statuses,
    own_commits,
    read_committer,
    read_signature,
)
from tests.support.forges.gitea.world import (
    Account,
    ApiError,
    Blocker,
    Comment,
    Hook,
    Key,
    Label,
    PullRequest,
    Reaction,
    Repository,
    Rule,
    Settings,
    Status,
    World,
    find_comment,
    find_pull_request,
)

MAX_PAGE_SIZE = 50
"""Entries per page, whatever was requested."""


class Response(Struct, frozen=True):
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Call(Struct, frozen=True):
    world: World
    actions: Actions
    payloads: Payloads
    account: Account
    path: str
    path_params: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]

    @property
    def repository(self) -> Repository:
        return self.world.repository(self.path_params["owner"], self.path_params["repo"])

    @property
    def pull_request(self) -> PullRequest:
        return find_pull_request(self.repository, self.path_params["index"])

    def require_role(self, role: str) -> None:
        if not self.world.has_role(self.repository, self.account, role):
            message = "user should be an owner or a collaborator with admin write of a repository"
            raise ApiError(403, message if role == "admin" else f"user should have {role} permission")

    def page(self, entries: Sequence[Payload], *, has_link: bool = True) -> Response:
        """One page of the entries. Gitea sends no link to the next page of reviews and dependencies."""
        size = min(int(self.query.get("limit", MAX_PAGE_SIZE)), MAX_PAGE_SIZE)
        number = int(self.query.get("page", 1))
        headers = {"x-total-count": str(len(entries))}
        if has_link and number * size < len(entries):
            next_url = f"{self.world.url}/api/v1{self.path}?limit={size}&page={number + 1}"
            others = "".join(f"&{name}={value}" for name, value in self.query.items() if name not in ("limit", "page"))
            headers["link"] = f'<{next_url}{others}>; rel="next"'
        return Response(200, entries[(number - 1) * size : number * size], headers)

    def since(self) -> datetime | None:
        return datetime.fromisoformat(self.query["since"]) if "since" in self.query else None


Handler = Callable[[Call], Response]


class Route(Struct, frozen=True):
    method: str
    template: str
    """In the notation of the API description."""
    pattern: re.Pattern[str]
    handler: Handler


ROUTES: list[Route] = []


def route(method: str, template: str) -> Callable[[Handler], Handler]:
    """Adds a handler to the table."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template))

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, template, pattern, handler))
        return handler

    return register


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The path is still quoted, so that a slash in a name is no separator."""
    for route in ROUTES:
        found = route.pattern.fullmatch(path)
        if found and route.method == method:
            return route, found.groupdict()
    return None


VERSION = "1.26.0"
REPO = "/repos/{owner}/{repo}"


@route("GET", "/version")
def get_version(call: Call) -> Response:  # noqa: ARG001
    return Response(200, {"version": VERSION})


@route("GET", "/user")
def get_current_user(call: Call) -> Response:
    return Response(200, payloads.user(call.account, call.account))


@route("GET", "/user/keys")
def list_ssh_keys(call: Call) -> Response:
    """Gitea does not report which of them are verified."""
    wanted = call.query.get("fingerprint")
    shown = [payloads.ssh_key(key) for key in call.account.keys if key.is_ssh]
    return call.page([each for each in shown if wanted in (None, each["fingerprint"])])


@route("POST", "/user/keys")
def add_ssh_key(call: Call) -> Response:
    key = Key(call.world.next_id(), call.body["key"])
    call.account.keys.append(key)
    return Response(201, payloads.ssh_key(key))


@route("GET", "/user/gpg_keys")
def list_gpg_keys(call: Call) -> Response:
    return call.page([payloads.gpg_key(key) for key in call.account.keys if not key.is_ssh])


@route("GET", "/users/{username}")
def get_user(call: Call) -> Response:
    return Response(200, payloads.user(call.world.account(call.path_params["username"]), call.account))


@route("POST", "/users/{username}/tokens")
def create_token(call: Call) -> Response:
    scopes = call.body["scopes"]
    secret = call.world.make_token(call.world.account(call.path_params["username"]), *scopes)
    return Response(201, {"id": call.world.next_id(), "name": call.body["name"], "sha1": secret, "scopes": scopes})


@route("POST", "/admin/users")
def create_user(call: Call) -> Response:
    if not call.account.site_admin:
        raise ApiError(403, "user should be the site admin")
    return Response(201, payloads.user(call.world.make_account(call.body["username"], call.body["password"])))


@route("POST", "/user/repos")
def create_repository(call: Call) -> Response:
    created = add_repository(call, call.body["name"])
    if call.body.get("auto_init"):
        created.origin.commit("main", {"README.md": created.name})
    return Response(201, call.payloads.repository(created, call.account))


@route("POST", f"{REPO}/forks")
def create_fork(call: Call) -> Response:
    source = call.repository
    created = add_repository(call, source.name)
    created.origin.run("fetch", "--quiet", source.origin.url, "+refs/heads/*:refs/heads/*")
    return Response(202, call.payloads.repository(created, call.account))


def add_repository(call: Call, name: str) -> Repository:
    path = f"{call.account.login}/{name}"
    if path.lower() in call.world.repositories:
        raise ApiError(409, "The repository with the same name already exists.")
    created = Repository(call.world.next_id(), call.account, name, call.world.git_server.create(path))
    call.world.repositories[path.lower()] = created
    return created


@route("GET", REPO)
def get_repository(call: Call) -> Response:
    return Response(200, call.payloads.repository(call.repository, call.account))


@route("PATCH", REPO)
def update_repository(call: Call) -> Response:
    call.require_role("admin")
    call.repository.settings = convert(structs.asdict(call.repository.settings) | call.body, Settings)
    return Response(200, call.payloads.repository(call.repository, call.account))


@route("GET", f"{REPO}/branches/{{branch}}")
def get_branch(call: Call) -> Response:
    name = call.path_params["branch"]
    if call.repository.origin.ref(name) is None:
        raise ApiError(404, "not found")
    return Response(200, call.payloads.branch(call.repository, name, call.account))


@route("GET", f"{REPO}/git/refs/{{ref}}")
def list_refs(call: Call) -> Response:
    """All refs with this prefix."""
    prefix = f"refs/{call.path_params['ref']}"
    found = {ref: sha for ref, sha in call.repository.origin.refs().items() if ref.startswith(prefix)}
    if not found:
        raise ApiError(404, "not found")
    return Response(200, [{"ref": ref, "object": {"type": "commit", "sha": sha}} for ref, sha in found.items()])


@route("GET", f"{REPO}/git/commits/{{sha}}")
def get_commit(call: Call) -> Response:
    sha = require_commit(call.repository, call.path_params["sha"])
    verification = {
        "verified": is_verified(call.world, call.repository, sha),
        "signature": read_signature(call.repository, sha),
    }
    committer = {"email": read_committer(call.repository, sha)}
    return Response(200, {"sha": sha, "commit": {"committer": committer, "verification": verification}})


@route("POST", f"{REPO}/branch_protections")
def create_branch_protection(call: Call) -> Response:
    call.require_role("admin")
    rule = convert(call.body, Rule)
    if any(each.rule_name == rule.rule_name for each in call.repository.rules):
        raise ApiError(403, "Branch protection already exist")
    call.repository.rules.append(rule)
    return Response(201, structs.asdict(rule))


@route("GET", f"{REPO}/branch_protections")
def list_branch_protections(call: Call) -> Response:
    call.require_role("admin")
    return Response(200, [structs.asdict(rule) for rule in call.repository.rules])


@route("GET", f"{REPO}/branch_protections/{{name}}")
def get_branch_protection(call: Call) -> Response:
    call.require_role("admin")
    rule = next((each for each in call.repository.rules if each.rule_name == call.path_params["name"]), None)
    if rule is None:
        raise ApiError(404, "not found")
    return Response(200, structs.asdict(rule))


@route("PUT", f"{REPO}/collaborators/{{collaborator}}")
def add_collaborator(call: Call) -> Response:
    call.require_role("admin")
    account = call.world.account(call.path_params["collaborator"])
    call.repository.roles[account.login] = call.body["permission"]
    return Response(204)


@route("GET", f"{REPO}/collaborators/{{collaborator}}/permission")
def get_collaborator_permission(call: Call) -> Response:
    name = call.path_params["collaborator"]
    if name.lower() != call.account.login.lower() and not call.world.has_role(call.repository, call.account, "admin"):
        raise ApiError(403, "Only admins can query all permissions, collaborators can query only their own")
    account = call.world.account(name)
    role = call.world.role(call.repository, account)
    return Response(200, {"permission": role, "role_name": role, "user": payloads.user(account)})


PULL_REQUEST_EVENTS = (
    *("pull_request_sync", "pull_request_label", "pull_request_comment"),
    *("pull_request_review", "pull_request_review_request"),
)
"""What a webhook for the event `pull_request` sends too, if it is created with the API."""


@route("GET", f"{REPO}/hooks")
def list_hooks(call: Call) -> Response:
    call.require_role("admin")
    return call.page([payloads.hook(each) for each in call.repository.hooks])


@route("POST", f"{REPO}/hooks")
def create_hook(call: Call) -> Response:
    call.require_role("admin")
    config: dict[str, Any] = call.body["config"]
    events = [*call.body["events"], *(PULL_REQUEST_EVENTS if "pull_request" in call.body["events"] else ())]
    facts = (config["url"], config.get("secret", ""), config["content_type"], sorted({*events}), call.body["active"])
    created = Hook(call.world.next_id(), *facts)
    call.repository.hooks.append(created)
    return Response(201, payloads.hook(created))


PULL = f"{REPO}/pulls/{{index}}"


@route("GET", f"{REPO}/pulls")
def list_pull_requests(call: Call) -> Response:
    repository, state = call.repository, call.query.get("state", "open")
    found = [pull for pull in repository.pull_requests.values() if state in ("all", pull.state)]
    updated = call.query.get("sort") == "recentupdate"
    found.sort(key=lambda pull: (pull.updated if updated else pull.created, pull.number), reverse=True)
    return call.page([call.payloads.pull_request(repository, pull, call.account) for pull in found])


@route("POST", f"{REPO}/pulls")
def create_pull_request(call: Call) -> Response:
    pull = call.actions.open_pull_request(call.repository, call.account, call.body)
    return Response(201, call.payloads.pull_request(call.repository, pull, call.account))


@route("GET", PULL)
def get_pull_request(call: Call) -> Response:
    """Unlike a list, with the number of changed files."""
    repository, pull = call.repository, call.pull_request
    count = len(changed_files(repository, pull))
    return Response(200, call.payloads.pull_request(repository, pull, call.account) | {"changed_files": count})


@route("PATCH", PULL)
def update_pull_request(call: Call) -> Response:
    pull = call.pull_request
    if "state" in call.body and pull.merged:
        raise ApiError(412, "cannot change state of this pull request, it was already merged")
    if call.body.get("base", pull.base) != pull.base:
        call.actions.retarget(call.repository, pull, call.body["base"])
    for name in ("title", "state", "body"):
        setattr(pull, name, call.body.get(name, getattr(pull, name)))
    action = {"closed": "closed", "open": "reopened"}.get(call.body.get("state", ""), "edited")
    call.actions.touch(call.repository, pull, call.account, "pull_request", action)
    return Response(201, call.payloads.pull_request(call.repository, pull, call.account))


@route("POST", f"{PULL}/merge")
def merge_pull_request(call: Call) -> Response:
    repository, pull, body = call.repository, call.pull_request, call.body
    check_merge_permission(call.world, repository, pull, call.account)
    if body["Do"] == "manually-merged":
        call.actions.mark_merged(repository, pull, call.account, body.get("MergeCommitID", ""))
        return Response(200)
    check_merge_readiness(call.world, repository, pull, call.account, force=body.get("force_merge", False))
    if body.get("head_commit_id", pull.head) != pull.head:
        raise ApiError(409, "head out of date")
    message = "\n\n".join(part for part in (body["MergeTitleField"], body.get("MergeMessageField")) if part)
    call.actions.merge(repository, pull, call.account, body["Do"], message)
    return Response(200)


@route("GET", f"{PULL}/reviews")
def list_reviews(call: Call) -> Response:
    reviews = [payloads.review(each, call.pull_request) for each in call.pull_request.reviews]
    return call.page(reviews, has_link=False)


@route("POST", f"{PULL}/reviews")
def create_review(call: Call) -> Response:
    state, body = call.body["event"], call.body["body"]
    review = call.actions.review(call.repository, call.pull_request, call.account, state, body)
    return Response(200, payloads.review(review, call.pull_request))


@route("POST", f"{PULL}/reviews/{{id}}/dismissals")
def dismiss_review(call: Call) -> Response:
    return set_dismissed(call, dismissed=True)


@route("POST", f"{PULL}/reviews/{{id}}/undismissals")
def undismiss_review(call: Call) -> Response:
    return set_dismissed(call, dismissed=False)


def set_dismissed(call: Call, *, dismissed: bool) -> Response:
    call.require_role("admin")
    review = next((each for each in call.pull_request.reviews if each.id == int(call.path_params["id"])), None)
    if review is None:
        raise ApiError(404, "not found")
    call.actions.dismiss(call.pull_request, review, dismissed=dismissed)
    return Response(200, payloads.review(review, call.pull_request))


@route("POST", f"{PULL}/requested_reviewers")
def request_reviews(call: Call) -> Response:
    """Teams are not requested with the API, because the fake has no organizations."""
    call.require_role("write")
    reviewers = [call.world.account(login) for login in call.body["reviewers"]]
    created = [call.actions.request_review(call.repository, call.pull_request, each) for each in reviewers]
    return Response(201, [payloads.review(each, call.pull_request) for each in created])


@route("GET", f"{PULL}/files")
def list_files(call: Call) -> Response:
    return call.page([{"filename": path} for path in changed_files(call.repository, call.pull_request)])


@route("GET", f"{PULL}/commits")
def list_commits(call: Call) -> Response:
    repository = call.repository
    verified = {sha: is_verified(call.world, repository, sha) for sha in own_commits(repository, call.pull_request)}
    return call.page(
        [{"sha": sha, "commit": {"verification": {"verified": is_good}}} for sha, is_good in verified.items()]
    )


@route("GET", f"{REPO}/issues/{{index}}/timeline")
def list_timeline(call: Call) -> Response:
    """Only the pushes of a pull request are recorded."""
    pull: PullRequest = call.pull_request
    return Response(200, [{"id": number + 1, "type": "pull_push"} for number in range(pull.pushes)])


@route("POST", f"{REPO}/statuses/{{sha}}")
def create_status(call: Call) -> Response:
    call.require_role("write")
    body, world = call.body, call.world
    check = (require_commit(call.repository, call.path_params["sha"]), body["context"], body["state"])
    details = (body.get("target_url", ""), body.get("description", ""))
    status = Status(world.next_id(), call.account, *check, *details, world.now())
    call.repository.statuses.append(status)
    call.actions.webhooks.send_status(call.repository, status)
    return Response(201, call.payloads.status(status))


@route("GET", f"{REPO}/commits/{{ref}}/statuses")
def list_statuses(call: Call) -> Response:
    """In no particular order."""
    sha = require_commit(call.repository, call.path_params["ref"])
    found = [status for status in call.repository.statuses if status.sha == sha]
    return call.page([call.payloads.status(each) for each in [*found[1:], *found[:1]]])


@route("GET", f"{REPO}/commits/{{ref}}/status")
def get_combined_status(call: Call) -> Response:
    sha = require_commit(call.repository, call.path_params["ref"])
    found = [call.payloads.status(each) for each in latest_statuses(call.repository, sha)]
    return Response(200, {"sha": sha, "total_count": len(found), "statuses": found})


def require_commit(repository: Repository, sha: str) -> Sha:
    known = repository.origin.run("cat-file", "--batch-check=%(objecttype)", stdin=f"{sha}\n".encode())
    if known.strip() != b"commit":
        raise ApiError(404, "object does not exist")
    return Sha(sha)


ISSUE = f"{REPO}/issues/{{index}}"
COMMENT = f"{REPO}/issues/comments/{{id}}"


@route("GET", f"{ISSUE}/comments")
def list_comments(call: Call) -> Response:
    """All comments: this list is not paginated."""
    since = call.since()
    found = [comment for comment in call.pull_request.comments if since is None or comment.updated >= since]
    return Response(200, [payloads.comment(each) for each in found])


@route("POST", f"{ISSUE}/comments")
def create_comment(call: Call) -> Response:
    pull, now = call.pull_request, call.world.now()
    comment = Comment(call.world.next_id(), call.account, call.body["body"], now, now)
    pull.comments.append(comment)
    pull.updated = now
    call.actions.webhooks.send_comment(call.repository, pull, comment)
    return Response(201, payloads.comment(comment))


@route("PATCH", COMMENT)
def update_comment(call: Call) -> Response:
    pull, comment = find_comment(call.repository, call.path_params["id"])
    if comment.author is not call.account:
        call.require_role("write")
    comment.body, comment.updated = call.body["body"], call.world.now()
    call.actions.webhooks.send_comment(call.repository, pull, comment, "edited")
    return Response(200, payloads.comment(comment))


@route("GET", f"{COMMENT}/reactions")
def list_reactions(call: Call) -> Response:
    _, comment = find_comment(call.repository, call.path_params["id"])
    return Response(200, [payloads.reaction(each, call.world.account(each.login)) for each in comment.reactions])


@route("POST", f"{COMMENT}/reactions")
def create_reaction(call: Call) -> Response:
    _, comment = find_comment(call.repository, call.path_params["id"])
    created = Reaction(call.account.login, call.body["content"])
    known = created in comment.reactions
    comment.reactions.extend([] if known else [created])
    return Response(200 if known else 201, payloads.reaction(created, call.account))


@route("GET", f"{REPO}/labels")
def list_labels(call: Call) -> Response:
    return call.page([payloads.label(each) for each in call.repository.labels])


@route("POST", f"{REPO}/labels")
def create_label(call: Call) -> Response:
    call.require_role("write")
    created = Label(call.world.next_id(), call.body["name"], call.body["color"].lstrip("#"))
    call.repository.labels.append(created)
    return Response(201, payloads.label(created))


@route("GET", f"{ISSUE}/labels")
def list_issue_labels(call: Call) -> Response:
    return Response(200, [payloads.label(each) for each in call.pull_request.labels])


@route("POST", f"{ISSUE}/labels")
def add_issue_labels(call: Call) -> Response:
    call.require_role("write")
    pull = call.pull_request
    new = [label for label in call.repository.labels if label.id in call.body["labels"] and label not in pull.labels]
    pull.labels.extend(new)
    call.actions.touch(call.repository, pull, call.account, "pull_request_label", "label_updated")
    return Response(200, [payloads.label(each) for each in pull.labels])


@route("DELETE", f"{ISSUE}/labels/{{id}}")
def remove_issue_label(call: Call) -> Response:
    call.require_role("write")
    pull, identity = call.pull_request, int(call.path_params["id"])
    if all(label.id != identity for label in call.repository.labels):
        raise ApiError(422, "label does not exist")
    pull.labels[:] = [label for label in pull.labels if label.id != identity]
    call.actions.touch(call.repository, pull, call.account, "pull_request_label", "label_updated")
    return Response(204)


DEPENDENCIES = f"{REPO}/issues/{{index}}/dependencies"


@route("GET", DEPENDENCIES)
def list_dependencies(call: Call) -> Response:
    if not call.repository.settings.internal_tracker["enable_issue_dependencies"]:
        raise ApiError(404, "not found")
    return call.page([payloads.issue(each) for each in call.pull_request.blockers], has_link=False)


@route("POST", DEPENDENCIES)
def add_dependency(call: Call) -> Response:
    repository = call.world.repository(call.body["owner"], call.body["repo"])
    blocker = Blocker(repository, find_pull_request(repository, call.body["index"]))
    if not call.world.has_role(call.repository, call.account, "write"):
        raise ApiError(404, "not found")
    call.pull_request.blockers.append(blocker)
    return Response(201, payloads.issue(Blocker(call.repository, call.pull_request)))
