"""The live kit at Gitea or Forgejo."""

from typing import Any, ClassVar

from tests.live.client import Client, Reply
from tests.live.hosts import ADMIN, CHECK, LABEL, SECOND, LiveHost

EVENTS = (
    *("push", "status", "issue_comment"),
    *("pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
)


class LiveGitea(LiveHost):
    kind = "gitea"
    title = "Gitea"
    members: ClassVar = {
        "repository": ("default_branch", "permissions", "allow_merge_commits", "allow_squash_merge"),
        "protection": ("rule_name", "status_check_contexts", "required_approvals", "enable_push_whitelist"),
        "rules": ("protected", "status_check_contexts", "required_approvals", "user_can_push", "user_can_merge"),
        "pull_request": ("state", "draft", "merged", "mergeable", "base.ref", "labels[].name"),
        "blocked": ("mergeable",),
        "merged": ("state", "merged"),
        "pull_requests": ("[].state", "[].draft", "[].merged", "[].title"),
        "review": ("state", "official", "stale", "dismissed"),
        "changes": ("state", "official", "stale", "dismissed"),
        "check": ("status", "context", "description"),
        "files": ("[].filename",),
        "comment": ("body", "user.login"),
        "reactions": ("[].content", "[].user.login"),
        "labels": ("[].name",),
        "error": ("message",),
    }

    def _client(self, token: str) -> Client:
        headers = {"authorization": f"token {token}"}
        return Client(self.access.api_url, headers, self.budget, self.access.ca_file)

    def _read_login(self, client: Client) -> str:
        return client.send("GET", "/user").must_succeed().body["login"]

    @property
    def _repo(self) -> str:
        return f"/repos/{self.path}"

    # The repository

    def create_repository(self) -> Reply:
        members: dict[str, Any] = {"name": self.name, "default_branch": "main", "private": self.access.is_private}
        is_own = self.owner.lower() == self.logins[ADMIN].lower()
        return self.send("POST", "/user/repos" if is_own else f"/orgs/{self.owner}/repos", members)

    def delete_repository(self) -> Reply:
        return self.send("DELETE", self._repo)

    def delete_fork(self) -> Reply:
        return self.send("DELETE", f"/repos/{self.fork_path}", who=SECOND)

    def rename(self, name: str) -> Reply:
        return self.send("PATCH", self._repo, {"name": name})

    def read_repository(self, path: str = "", who: str = ADMIN) -> Reply:
        return self.send("GET", f"/repos/{path or self.path}", who=who)

    def admit_second(self) -> None:
        members = {"permission": "write"}
        self.send("PUT", f"{self._repo}/collaborators/{self.logins[SECOND]}", members).must_succeed()

    def protect(self, approvals: int) -> Reply:
        self.send("PATCH", self._repo, {"allow_manual_merge": True}).must_succeed()
        only_us: dict[str, Any] = {
            "enable_push": True,
            "enable_push_whitelist": True,
            "push_whitelist_usernames": [self.logins[ADMIN]],
        }
        checks = {"enable_status_check": True, "status_check_contexts": [CHECK]}
        reviews = {"required_approvals": approvals, "block_on_rejected_reviews": True}
        members = {"rule_name": "main", **reviews, **only_us, **checks}
        return self.send("POST", f"{self._repo}/branch_protections", members)

    def unprotect(self) -> None:
        self.send("DELETE", f"{self._repo}/branch_protections/main")

    def read_rules(self) -> Reply:
        return self.send("GET", f"{self._repo}/branches/main")

    def add_webhook(self, url: str, secret: str) -> Reply:
        config = {"url": f"{url}/hooks/gitea/{self.access.host_name}", "content_type": "json", "secret": secret}
        members = {"type": "gitea", "config": config, "events": EVENTS, "active": True}
        return self.send("POST", f"{self._repo}/hooks", members)

    # Pull requests

    def open(self, branch: str, title: str, *, who: str = ADMIN, from_fork: bool = False) -> Reply:
        head = f"{self.logins[SECOND]}:{branch}" if from_fork else branch
        return self.send("POST", f"{self._repo}/pulls", {"title": title, "head": head, "base": "main"}, who)

    def number_of(self, reply: Reply) -> int:
        return reply.must_succeed().body["number"]

    def read(self, number: int, who: str = ADMIN) -> Reply:
        return self.send("GET", f"{self._repo}/pulls/{number}", who=who)

    def is_settled(self, reply: Reply) -> bool:
        """Gitea shows no difference between a conflict and a check that has not ended."""
        return bool(reply.body["mergeable"]) or reply.body["merged"]

    def is_merged(self, reply: Reply) -> bool:
        return reply.body["merged"]

    def list_by_branch(self, branch: str) -> Reply:
        reply = self.send("GET", f"{self._repo}/pulls?state=all&limit=50")
        found = [one for one in reply.must_succeed().body if one["head"]["label"] == branch]
        return Reply(asked=f"{reply.asked} (those of one branch)", status=reply.status, headers={}, body=found)

    def close_all(self) -> None:
        for one in self.send("GET", f"{self._repo}/pulls?state=open&limit=50").must_succeed().body:
            self.send("PATCH", f"{self._repo}/pulls/{one['number']}", {"state": "closed"})

    def approve(self, number: int, who: str = SECOND) -> Reply:
        return self.send("POST", f"{self._repo}/pulls/{number}/reviews", {"event": "APPROVED", "body": "ok"}, who)

    def request_changes(self, number: int) -> Reply:
        members = {"event": "REQUEST_CHANGES", "body": "Changes, please."}
        return self.send("POST", f"{self._repo}/pulls/{number}/reviews", members, SECOND)

    def withdraw_approval(self, number: int, approval: Reply) -> Reply:
        path = f"{self._repo}/pulls/{number}/reviews/{approval.body['id']}/dismissals"
        return self.send("POST", path, {"message": "Not yet."})

    def list_files(self, number: int) -> Reply:
        return self.send("GET", f"{self._repo}/pulls/{number}/files")

    def comment(self, number: int, text: str, who: str = ADMIN) -> Reply:
        return self.send("POST", f"{self._repo}/issues/{number}/comments", {"body": text}, who)

    def list_comments(self, number: int) -> Reply:
        return self.send("GET", f"{self._repo}/issues/{number}/comments")

    def list_reactions(self, number: int, comment: int) -> Reply:  # noqa: ARG002
        return self.send("GET", f"{self._repo}/issues/comments/{comment}/reactions")

    def label(self, number: int) -> Reply:
        created = self.send("POST", f"{self._repo}/labels", {"name": LABEL, "color": "#00aabb"}).must_succeed()
        return self.send("POST", f"{self._repo}/issues/{number}/labels", {"labels": [created.body["id"]]})

    def labels(self, number: int) -> list[str]:
        reply = self.send("GET", f"{self._repo}/issues/{number}/labels").must_succeed()
        return [label["name"] for label in reply.body]

    def report(self, sha: str, state: str, *, check: str = CHECK, who: str = ADMIN) -> Reply:
        return self.send("POST", f"{self._repo}/statuses/{sha}", {"context": check, "state": state}, who)

    def list_checks(self, sha: str) -> Reply:
        return self.send("GET", f"{self._repo}/commits/{sha}/status")

    def check_states(self, reply: Reply) -> dict[str, str]:
        found: list[dict[str, str]] = reply.must_succeed().body["statuses"] or []
        return {one["context"]: one["status"] for one in found}

    def fork(self) -> Reply:
        reply = self.send("POST", f"{self._repo}/forks", {}, SECOND)
        self.fork_path = reply.must_succeed().body["full_name"]
        return reply
