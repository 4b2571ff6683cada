"""The live kit at GitHub, with a token of a person, or with an App for Mergeyard."""

from typing import Any, ClassVar

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges.github.auth import sign_app_jwt
from mergeyard.adapters.forges.http import App
from tests.live.client import Client, NotRun, Reply, RequestRefused
from tests.live.hosts import ADMIN, BOT, CHECK, LABEL, SECOND, LiveHost
from tests.live.stage import Stage

API_VERSION = "2022-11-28"
RULESET = "live kit"
ADMIN_ROLE = 5
"""The ID of the role Admin in a bypass list."""
INSTALLATION_READS, INSTALLATION_PAUSE_S = 4, 2
PULL_REQUEST_QUERY = (
    "query($owner: String!, $name: String!, $number: Int!) "
    "{ repository(owner: $owner, name: $name) { pullRequest(number: $number) { %s } } }"
)
DECISION_QUERY = PULL_REQUEST_QUERY % "reviewDecision"
THREADS_QUERY = PULL_REQUEST_QUERY % "reviewThreads(first: 10) { nodes { id } }"
RESOLVE_MUTATION = (
    "mutation($thread: ID!) { resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } } }"
)
EVENTS = (
    *("pull_request", "pull_request_review", "pull_request_review_thread", "issue_comment"),
    *("status", "check_run", "check_suite", "push"),
)


class LiveGithub(LiveHost):
    kind = "github"
    title = "GitHub"
    git_user = "x-access-token"
    ruleset = 0
    """The ID of the ruleset of the kit."""
    members: ClassVar = {
        "repository": ("private", "default_branch", "permissions.admin", "permissions.push"),
        "protection": ("name", "enforcement", "rules[].type", "current_user_can_bypass"),
        "rules": ("[].type", "[].parameters.required_status_checks", "[].parameters.required_approving_review_count"),
        "pull_request": ("state", "draft", "merged", "mergeable", "mergeable_state", "base.ref", "labels[].name"),
        "blocked": ("mergeable", "mergeable_state"),
        "merged": ("state", "merged"),
        "pull_requests": ("[].state", "[].draft", "[].title", "[].merged_at"),
        "review": ("state", "user.login"),
        "changes": ("state", "user.login"),
        "conversation": ("path",),
        "files": ("[].filename",),
        "check": ("state", "context", "description"),
        "comment": ("body", "user.login"),
        "reactions": ("[].content", "[].user.login"),
        "labels": ("[].name",),
        "merge": ("merged", "message"),
    }

    def _client(self, token: str) -> Client:
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": API_VERSION,
        }
        return Client(self.access.api_url, headers, self.budget, self.access.ca_file)

    def _read_login(self, client: Client) -> str:
        return client.send("GET", "/user").must_succeed().body["login"]

    @property
    def repo(self) -> str:
        return f"/repos/{self.path}"

    # The repository

    def create_repository(self) -> Reply:
        is_own = self.owner.lower() == self.logins[ADMIN].lower()
        members = {"name": self.name, "private": self.access.is_private}
        return self.send("POST", "/user/repos" if is_own else f"/orgs/{self.owner}/repos", members)

    def connect(self) -> None:
        """Gets a token of the App, if there is one: it then acts for the bot."""
        if not self.has_app:
            self._clients[BOT], self._tokens[BOT] = self._clients[ADMIN], self._tokens[ADMIN]
            return
        token = self.issue_token().must_succeed().body["token"]
        self.extra_secrets.append(token)
        self._clients[BOT], self._tokens[BOT] = self._client(token), token

    def as_app(self) -> Client:
        """A client that authenticates as the App itself."""
        app = App(self.access.app_id, self.access.app_key)
        return self._client(sign_app_jwt(app, WallClock().now()))

    def issue_token(self, **members: Any) -> Reply:
        """A new token of the App, for this repository."""
        client = self.as_app()
        try:
            self._app = client.send("GET", "/app").must_succeed().body
            self.logins[BOT] = f"{self._app['slug']}[bot]"
            found = client.send("GET", f"{self.repo}/installation")
            for _ in range(INSTALLATION_READS):  # a new repository can need a moment
                if found.status != 404:
                    break
                self.budget.wait(INSTALLATION_PAUSE_S)
                found = client.send("GET", f"{self.repo}/installation")
            if found.status == 404:
                raise NotRun(
                    f"the App cannot see {self.path}: install it on all repositories of {self.owner}, or name a "
                    "repository that it can see with --scratch-repo"
                )
            number = found.must_succeed().body["id"]
            return client.send("POST", f"/app/installations/{number}/access_tokens", {**members})
        finally:
            client.close()

    def delete_repository(self) -> Reply:
        return self.send("DELETE", self.repo)

    def delete_fork(self) -> Reply:
        return self.send("DELETE", f"/repos/{self.fork_path}", who=SECOND)

    def rename(self, name: str) -> Reply:
        return self.send("PATCH", self.repo, {"name": name})

    def read_repository(self, path: str = "", who: str = ADMIN) -> Reply:
        return self.send("GET", f"/repos/{path or self.path}", who=who)

    def admit_second(self) -> None:
        """The second account accepts the invitation, if GitHub sends one."""
        reply = self.send("PUT", f"{self.repo}/collaborators/{self.logins[SECOND]}", {"permission": "push"})
        if reply.must_succeed().body:
            self.send("PATCH", f"/user/repository_invitations/{reply.body['id']}", who=SECOND).must_succeed()

    def bypass_actor(self, mode: str = "always") -> dict[str, Any]:
        """The account of Mergeyard, on the bypass list of a ruleset."""
        if self.has_app:
            return {"actor_id": self._app["id"], "actor_type": "Integration", "bypass_mode": mode}
        return {"actor_id": ADMIN_ROLE, "actor_type": "RepositoryRole", "bypass_mode": mode}

    def write_ruleset(
        self,
        approvals: int,
        *,
        mode: str = "always",
        strict: bool = False,
        is_tied: bool = False,
        conversations: bool = False,
        code_owners: bool = False,
    ) -> Reply:
        """Creates the ruleset, or replaces it. Without a mode, no account can bypass it. A tied check counts only from
        the App."""
        reviews = {
            "required_approving_review_count": approvals,
            "dismiss_stale_reviews_on_push": False,
            "require_code_owner_review": code_owners,
            "require_last_push_approval": False,
            "required_review_thread_resolution": conversations,
        }
        check = {"context": CHECK} | ({"integration_id": self._app["id"]} if is_tied else {})
        checks = {"required_status_checks": [check], "strict_required_status_checks_policy": strict}
        members: dict[str, Any] = {
            "name": RULESET,
            "target": "branch",
            "enforcement": "active",
            "bypass_actors": [self.bypass_actor(mode)] if mode else [],
            "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
            "rules": [
                {"type": "pull_request", "parameters": reviews},
                {"type": "required_status_checks", "parameters": checks},
            ],
        }
        if self.ruleset:
            return self.send("PUT", f"{self.repo}/rulesets/{self.ruleset}", members)
        reply = self.send("POST", f"{self.repo}/rulesets", members)
        self.ruleset = reply.body["id"] if reply.succeeded else 0
        return reply

    def protect(self, approvals: int) -> Reply:
        return self.write_ruleset(approvals)

    def unprotect(self) -> None:
        """The free plan refuses these requests."""
        if self.access.is_free:
            return
        for one in self.send("GET", f"{self.repo}/rulesets").must_succeed().body:
            if one["name"] == RULESET:
                self.send("DELETE", f"{self.repo}/rulesets/{one['id']}")
        self.ruleset = 0
        self.unprotect_classic()

    def read_rules(self) -> Reply:
        return self.send("GET", f"{self.repo}/rules/branches/main")

    def add_webhook(self, url: str, secret: str) -> Reply:
        config = {"url": f"{url}/hooks/github/{self.access.host_name}", "content_type": "json", "secret": secret}
        return self.send("POST", f"{self.repo}/hooks", {"config": config, "events": EVENTS, "active": True})

    # Pull requests

    def open(self, branch: str, title: str, *, who: str = ADMIN, from_fork: bool = False, base: str = "main") -> Reply:
        head = f"{self.logins[SECOND]}:{branch}" if from_fork else branch
        members = {"title": title, "head": head, "base": base, "body": ""}
        return self.send("POST", f"{self.repo}/pulls", members, who)

    def stack(self, *numbers: int) -> Reply:
        """Makes a stack of pull requests, the bottom first."""
        return self.send("POST", f"{self.repo}/stacks", {"pull_requests": numbers})

    def number_of(self, reply: Reply) -> int:
        return reply.must_succeed().body["number"]

    def read(self, number: int, who: str = ADMIN) -> Reply:
        return self.send("GET", f"{self.repo}/pulls/{number}", who=who)

    def is_settled(self, reply: Reply) -> bool:
        return reply.body["merged"] or reply.body["mergeable"] is not None

    def is_merged(self, reply: Reply) -> bool:
        return reply.body["merged"]

    def merge(self, number: int, who: str = BOT) -> Reply:
        return self.send("PUT", f"{self.repo}/pulls/{number}/merge", {"merge_method": "merge"}, who)

    def list_by_branch(self, branch: str) -> Reply:
        return self.send("GET", f"{self.repo}/pulls?state=all&head={self.owner}:{branch}")

    def close_all(self) -> None:
        for one in self.send("GET", f"{self.repo}/pulls?state=open&per_page=50").must_succeed().body:
            self.send("PATCH", f"{self.repo}/pulls/{one['number']}", {"state": "closed"})

    def approve(self, number: int, who: str = SECOND) -> Reply:
        return self.send("POST", f"{self.repo}/pulls/{number}/reviews", {"event": "APPROVE"}, who)

    def request_changes(self, number: int) -> Reply:
        members = {"event": "REQUEST_CHANGES", "body": "Changes, please."}
        return self.send("POST", f"{self.repo}/pulls/{number}/reviews", members, SECOND)

    def withdraw_approval(self, number: int, approval: Reply) -> Reply:
        path = f"{self.repo}/pulls/{number}/reviews/{approval.body['id']}/dismissals"
        return self.send("PUT", path, {"message": "Not yet.", "event": "DISMISS"})

    def require_conversations(self) -> None:
        self.need_rules("a rule about conversations")
        self.write_ruleset(self.required_approvals, conversations=True).must_succeed()

    def start_conversation(self, number: int, path: str) -> Reply:
        head = self.read(number).must_succeed().body["head"]["sha"]
        members = {"body": "Why?", "commit_id": head, "path": path, "line": 1, "side": "RIGHT"}
        return self.send("POST", f"{self.repo}/pulls/{number}/comments", members)

    def resolve_conversation(self, number: int, started: Reply) -> Reply:  # noqa: ARG002
        """The only one of the pull request."""
        threads = self._query_pull_request(THREADS_QUERY, number)["reviewThreads"]["nodes"]
        return self.query(RESOLVE_MUTATION, {"thread": threads[0]["id"]})

    def require_code_owner(self, path: str) -> None:
        """With no other approval, so that only the code owner's is missing."""
        self.need_second("a code owner")
        self.need_rules("a rule about code owners")
        owners = {".github/CODEOWNERS": f"/{path} @{self.logins[SECOND]}\n"}
        assert self.push_to_main(owners).succeeded
        self.write_ruleset(0, code_owners=True).must_succeed()

    def list_files(self, number: int) -> Reply:
        return self.send("GET", f"{self.repo}/pulls/{number}/files")

    def comment(self, number: int, text: str, who: str = ADMIN) -> Reply:
        return self.send("POST", f"{self.repo}/issues/{number}/comments", {"body": text}, who)

    def list_comments(self, number: int) -> Reply:
        return self.send("GET", f"{self.repo}/issues/{number}/comments")

    def list_reactions(self, number: int, comment: int) -> Reply:  # noqa: ARG002
        return self.send("GET", f"{self.repo}/issues/comments/{comment}/reactions")

    def label(self, number: int) -> Reply:
        return self.send("POST", f"{self.repo}/issues/{number}/labels", {"labels": [LABEL]})

    def labels(self, number: int) -> list[str]:
        return [label["name"] for label in self.read(number).must_succeed().body["labels"]]

    def report(self, sha: str, state: str, *, check: str = CHECK, who: str = ADMIN) -> Reply:
        return self.send("POST", f"{self.repo}/statuses/{sha}", {"context": check, "state": state}, who)

    def list_checks(self, sha: str) -> Reply:
        return self.send("GET", f"{self.repo}/commits/{sha}/status")

    def check_states(self, reply: Reply) -> dict[str, str]:
        found: list[dict[str, str]] = reply.must_succeed().body["statuses"]
        return {one["context"]: one["state"] for one in found}

    def fork(self) -> Reply:
        reply = self.send("POST", f"{self.repo}/forks", {}, SECOND)
        if reply.status == 403:
            raise NotRun(f"the owner does not allow forks of this repository: {reply.message}")
        self.fork_path = reply.must_succeed().body["full_name"]
        return reply

    def decide_reviews(self, number: int, who: str) -> str | None:
        """What GraphQL says about the reviews of a pull request."""
        return self._query_pull_request(DECISION_QUERY, number, who)["reviewDecision"]

    def _query_pull_request(self, query: str, number: int, who: str = ADMIN) -> Any:
        variables = {"owner": self.owner, "name": self.name, "number": number}
        reply = self.query(query, variables, who).must_succeed()
        return reply.body["data"]["repository"]["pullRequest"]

    def query(self, query: str, variables: dict[str, Any], who: str = ADMIN) -> Reply:
        """GitHub answers 200 also with errors."""
        url = self.access.api_url.removesuffix("/v3") + "/graphql"
        reply = self.send("POST", url, {"query": query, "variables": variables}, who)
        if reply.succeeded and reply.body.get("errors"):
            raise RequestRefused(f"GraphQL answered {reply.message}")
        return reply

    def protect_classic(self) -> Reply:
        """Classic protection, in addition to the ruleset."""
        members = {
            "required_status_checks": None,
            "enforce_admins": True,
            "required_pull_request_reviews": {"required_approving_review_count": 1},
            "restrictions": None,
        }
        return self.send("PUT", f"{self.repo}/branches/main/protection", members)

    def unprotect_classic(self) -> None:
        self.send("DELETE", f"{self.repo}/branches/main/protection")

    def use_token(self, who: str, token: str) -> None:
        """From now on `who` pushes with this token."""
        self.extra_secrets.append(token)
        self._tokens[who] = token

    # Mergeyard

    def queue_settings(self, poll_s: int) -> tuple[dict[str, object], dict[str, str]]:
        settings, secrets = super().queue_settings(poll_s)
        if self.has_app:
            return settings | {"app_id": self.access.app_id}, {"private_key": self.access.app_key}
        return settings, secrets


def to_github(stage: Stage) -> LiveGithub:
    assert isinstance(stage.host, LiveGithub)
    return stage.host
