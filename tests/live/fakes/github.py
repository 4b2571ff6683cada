"""The fake GitHub, with the requests of administrators, compared with GitHub's description as all others."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.github import auth
from tests.live.fakes.administration import OWNER, SECOND, Administration, Answer, Request, RequestLimiter
from tests.live.github import RESOLVE_MUTATION, THREADS_QUERY
from tests.live.hosts import Access
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.forges.github import payloads
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.calls import ApiError
from tests.support.forges.github.description import DescriptionMismatch, check_described, models
from tests.support.forges.github.fake import API_ROOT, GRAPHQL_PATH, FakeGithub
from tests.support.forges.github.rulesets import BypassActor
from tests.support.forges.github.webhooks import Webhooks
from tests.support.forges.github.world import BranchProtection, Caller, Hook, PublicApp, RegisteredApp
from tests.support.http_server import Receive, Scope, Send

UPGRADE = b'{"message": "Upgrade to GitHub Pro or make this repository public to enable this feature."}'
"""What GitHub answers to requests about rules, where the plan of a private repository has none."""
RULE_PATHS = "/(rulesets|rules/branches|branches/[^/]+/protection)(/|$)"


class AdministeredGithub(FakeGithub):
    def __init__(self, root: Path, *, is_free: bool = False) -> None:
        """On the free plan, all repositories are private."""
        self._is_free = is_free
        self.administration = Administration(API_ROOT)
        self.queries = Administration("")
        super().__init__(root, WallClock())
        repo = "/repos/*/*"
        self._add("POST", "/user/repos", self._create, models.UserReposPostBody)
        self._add("POST", "/orgs/*/repos", self._create, models.OrgsOrgReposPostBody)
        self._add("PATCH", repo, self._rename, models.ReposOwnerRepoPatchBody)
        self._add("DELETE", repo, self._delete)
        self._add("PUT", f"{repo}/collaborators/*", self._admit, models.ReposOwnerRepoCollaboratorsUsernamePutBody)
        self._add("POST", f"{repo}/rulesets", self._add_ruleset, models.ReposOwnerRepoRulesetsPostBody)
        self._add("PUT", f"{repo}/rulesets/*", self._edit_ruleset, models.ReposOwnerRepoRulesetsRulesetIdPutBody)
        self._add("DELETE", f"{repo}/rulesets/*", self._delete_ruleset)
        body = models.ReposOwnerRepoBranchesBranchProtectionPutBody
        self._add("PUT", f"{repo}/branches/*/protection", self._protect, body)
        self._add("DELETE", f"{repo}/branches/*/protection", self._unprotect)
        self._add("POST", f"{repo}/pulls", self._open_from_fork, models.ReposOwnerRepoPullsPostBody)
        body = models.ReposOwnerRepoPullsPullNumberReviewsPostBody
        self._add("POST", f"{repo}/pulls/*/reviews", self._review, body)
        body = models.ReposOwnerRepoIssuesIssueNumberLabelsPostBodyOneof0
        self._add("POST", f"{repo}/issues/*/labels", self._label, body)
        body = models.ReposOwnerRepoPullsPullNumberReviewsReviewIdDismissalsPutBody
        self._add("PUT", f"{repo}/pulls/*/reviews/*/dismissals", self._dismiss, body)
        body = models.ReposOwnerRepoPullsPullNumberCommentsPostBody
        self._add("POST", f"{repo}/pulls/*/comments", self._start_conversation, body)
        self._add("POST", f"{repo}/stacks", self._stack, models.ReposOwnerRepoStacksPostBody)
        self._add("POST", f"{repo}/hooks", self._add_hook, models.ReposOwnerRepoHooksPostBody)
        self._add("GET", f"{repo}/issues/comments/*/reactions", self._list_reactions)
        self._add("POST", f"{repo}/forks", self._fork, models.ReposOwnerRepoForksPostBody)
        self.queries.add("POST", GRAPHQL_PATH, self._answer_query)
        if is_free:
            self.faults.plan(RespondsWith(403, body=UPGRADE), RULE_PATHS, times=ALWAYS)

    def _add(
        self, method: str, path: str, handler: Callable[[Request, Caller], Answer | None], body: Any = None
    ) -> None:
        """A request that GitHub does not describe is a mismatch, as with all other requests to the fake."""

        def handle(request: Request) -> Answer | None:
            try:
                if body is not None:
                    check_described(body, request.body)
                with self._lock:
                    return handler(request, self._authenticate(request.headers))
            except DescriptionMismatch as mismatch:
                self.mismatches.append(f"{method} {path}: {mismatch}")
                return 500, {"message": str(mismatch)}
            except ApiError as error:
                return error.status, {"message": error.message}

        self.administration.add(method, path, handle)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        rest: Receive | None = receive
        for administration in (self.administration, self.queries):
            rest = rest and await administration.answer(scope, rest, send)
        return rest and await super()._route(scope, rest, send)

    def _repository(self, request: Request) -> FakeRepository:
        owner, name, *_ = request.params
        found = self.repositories.get(f"{owner}/{name}".lower())
        if found is None:
            raise ApiError(404)
        return found

    def _create(self, request: Request, caller: Caller) -> Answer:
        """The new repository is empty."""
        owner = request.params[0] if request.params else caller.login
        repository = self.create_repository(f"{owner}/{request.body['name']}")
        repository.origin.run("update-ref", "-d", "refs/heads/main")
        repository.is_private, repository.drafts_supported = request.body.get("private", False), not self._is_free
        # Its own webhooks, because those of the App are shared by all its repositories.
        repository.hooks = [*repository.hooks]
        repository.webhooks = Webhooks(repository.name, repository.hooks, self.deliveries)
        repository.roles[caller.login] = "admin"
        return 201, payloads.repository(repository, "admin")

    def _rename(self, request: Request, caller: Caller) -> Answer:
        repository = self._repository(request)
        self.rename_repository(repository.name, f"{repository.owner}/{request.body['name']}")
        return 200, payloads.repository(repository, repository.roles.get(caller.login))

    def _delete(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        del self.repositories[self._repository(request).name.lower()]
        return 204, None

    def _admit(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        """Members of the organization need no invitation."""
        self._repository(request).roles[request.params[2]] = {"push": "write"}[request.body["permission"]]
        return 204, None

    def _add_ruleset(self, request: Request, caller: Caller) -> Answer:
        repository = self._repository(request)
        ruleset = repository.add_ruleset(request.body["name"], request.body["rules"], bypass=_read_bypass(request))
        return 201, payloads.ruleset(repository, ruleset, caller)

    def _edit_ruleset(self, request: Request, caller: Caller) -> Answer:
        repository = self._repository(request)
        ruleset = next(one for one in repository.own_rulesets if str(one.id) == request.params[2])
        ruleset.rules, ruleset.bypass = request.body["rules"], _read_bypass(request)
        return 200, payloads.ruleset(repository, ruleset, caller)

    def _delete_ruleset(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        repository = self._repository(request)
        repository.own_rulesets[:] = [one for one in repository.own_rulesets if str(one.id) != request.params[2]]
        return 204, None

    def _protect(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        repository = self._repository(request)
        reviews: dict[str, Any] = request.body["required_pull_request_reviews"] or {}
        guard = BranchProtection(
            approvals=reviews.get("required_approving_review_count", 0), enforce_admins=request.body["enforce_admins"]
        )
        repository.protections[request.params[2]] = guard
        return 200, payloads.protection(guard)

    def _unprotect(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        if self._repository(request).protections.pop(request.params[2], None) is None:
            raise ApiError(404, "Branch not protected")
        return 204, None

    def _add_hook(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        config = request.body["config"]
        hook = Hook(url=config["url"], secret=config["secret"], events=request.body["events"])
        self._repository(request).hooks.append(hook)
        return 201, payloads.hook(hook)

    def _open_from_fork(self, request: Request, caller: Caller) -> Answer | None:
        """The fake keeps the branches of forks in the repository that they were forked from. It reads no CODEOWNERS
        file itself."""
        repository = self._repository(request)
        repository.code_owners = _read_code_owners(repository)
        owner, _, branch = request.body["head"].rpartition(":")
        if not owner:
            return None
        fork = self.repositories[f"{owner}/{request.params[1]}".lower()]
        repository.origin.run("fetch", "--quiet", fork.origin.url, f"refs/heads/{branch}:refs/heads/{branch}")
        facts = {"title": request.body["title"], "base": request.body["base"], "home": fork.name}
        change = repository.open_pull_request(branch, author=caller.login, **facts)
        return 201, payloads.pull_request(repository, change, caller)

    def _review(self, request: Request, caller: Caller) -> Answer:
        repository, number = self._repository(request), int(request.params[2])
        if caller.login == repository.pull_requests[number].author:
            raise ApiError(422, "Review Can not approve your own pull request")
        review = repository.add_review(number, caller.login, OPINIONS[request.body["event"]])
        return 200, payloads.review(review)

    def _dismiss(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        repository, number = self._repository(request), int(request.params[2])
        reviews = repository.pull_requests[number].reviews
        review = next(one for one in reviews if str(one.id) == request.params[3])
        repository.dismiss(number, review.user)
        return 200, payloads.review(review)

    def _start_conversation(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        self._repository(request).add_thread(int(request.params[2]))
        return 201, {"path": request.body["path"], "body": request.body["body"]}

    def _answer_query(self, request: Request) -> Answer | None:
        """Those about conversations. The ID of one names the repository, the pull request and its place there."""
        variables: dict[str, Any] = request.body["variables"]
        with self._lock:
            if request.body["query"] == THREADS_QUERY:
                name, number = f"{variables['owner']}/{variables['name']}", variables["number"]
                count = len(self.repositories[name.lower()].pull_requests[number].threads)
                nodes = [{"id": f"{name} {number} {index}"} for index in range(count)]
                return 200, {"data": {"repository": {"pullRequest": {"reviewThreads": {"nodes": nodes}}}}}
            if request.body["query"] == RESOLVE_MUTATION:
                name, number, index = variables["thread"].split(" ")
                self.repositories[name.lower()].resolve_thread(int(number), int(index))
                return 200, {"data": {"resolveReviewThread": {"thread": {"isResolved": True}}}}
        return None

    def _stack(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        self._repository(request).stack(*request.body["pull_requests"])
        return 201, {"open": True}

    def _label(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        repository, number = self._repository(request), int(request.params[2])
        for name in request.body["labels"]:
            repository.add_label(number, name)
        return 200, [payloads.label(name) for name in repository.pull_requests[number].labels]

    def _list_reactions(self, request: Request, caller: Caller) -> Answer:  # noqa: ARG002
        comment = self._repository(request).comments[int(request.params[2])]
        return 200, [payloads.reaction(*each) for each in comment.reactions]

    def _fork(self, request: Request, caller: Caller) -> Answer:
        source = self._repository(request)
        fork = self.create_repository(f"{caller.login}/{request.params[1]}")
        fork.origin.run("fetch", "--quiet", source.origin.url, "+refs/heads/*:refs/heads/*")
        fork.roles[caller.login], fork.is_private = "admin", source.is_private
        return 202, payloads.repository(fork, "admin")


OPINIONS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}


def _read_code_owners(repository: FakeRepository) -> dict[str, list[str]]:
    content = str(repository.origin.files("main").get(".github/CODEOWNERS", ""))
    lines = [line.split() for line in content.splitlines()]
    return {pattern: owners for pattern, *owners in lines}


def _read_bypass(request: Request) -> list[BypassActor]:
    return [BypassActor(**actor) for actor in request.body.get("bypass_actors", [])]


APP_ID, INSTALLATION = "4711", 99


@contextmanager
def fake_github(
    root: Path, like: Access | None = None, *, change: Callable[[AdministeredGithub], None] = lambda _: None
) -> Generator[Access]:
    """Like the real one: with an App, or without; with a second account, or without. Tests can change the fake."""
    is_free = like is not None and like.is_free
    with AdministeredGithub(root, is_free=is_free) as github:
        change(github)
        tokens = {login: f"github_pat_{uuid4().hex}" for login in (OWNER, SECOND)}
        for login, token in tokens.items():
            github.add_token(token, login)
        app_key = ""
        if like is not None and like.app_id:
            app_key, public_key = _make_keys()
            granted = {need.permission: need.level for need in auth.REQUIRED_PERMISSIONS}
            app = RegisteredApp(id=APP_ID, public_key=public_key, permissions=granted, events=list(auth.EVENTS))
            app.installations[OWNER] = INSTALLATION
            github.register_app(app)
            github.auth.public_apps[app.slug] = PublicApp(id=int(APP_ID), slug=app.slug, owner=OWNER, has_logo=False)
        yield Access(
            web_url=github.web_url,
            api_url=github.api_url,
            owner=OWNER,
            token=tokens[OWNER],
            second_token=tokens[SECOND] if like is None or like.second_token else "",
            app_id=APP_ID if app_key else "",
            app_key=app_key,
            is_private=like is None or like.is_private,
            is_free=is_free,
            limiter=RequestLimiter(github.faults, 403),
        )


def _make_keys() -> tuple[str, str]:
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode(), key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
