"""The live kit at GitLab, with a token of a person."""

from typing import Any, ClassVar
from urllib.parse import quote

from tests.live.client import Client, NotRun, Reply
from tests.live.hosts import ADMIN, CHECK, LABEL, SECOND, LiveHost
from tests.live.stage import Stage

DEVELOPER, MAINTAINER = 30, 40
STATES = {"failure": "failed"}
UNSETTLED = ("unchecked", "checking", "preparing", "approvals_syncing")
EVENTS = ("push_events", "merge_requests_events", "note_events", "pipeline_events", "job_events")


class LiveGitlab(LiveHost):
    kind = "gitlab"
    title = "GitLab"
    git_user = "oauth2"
    pull_ref = "refs/merge-requests/{}/head"
    command = "!merge"
    members: ClassVar = {
        "repository": ("default_branch", "visibility", "merge_method", "squash_option", "archived"),
        "protection": (
            *("name", "allow_force_push"),
            *("push_access_levels[].access_level", "merge_access_levels[].access_level"),
        ),
        "rules": ("name", "protected", "default", "can_push", "developers_can_push", "developers_can_merge"),
        "pull_request": (
            *("state", "draft", "detailed_merge_status", "target_branch", "labels", "squash", "squash_on_merge"),
            *("blocking_discussions_resolved", "merge_error", "user.can_merge", "head_pipeline.status"),
        ),
        "blocked": ("detailed_merge_status", "blocking_discussions_resolved"),
        "merged": ("state",),
        "pull_requests": ("[].state", "[].draft", "[].title"),
        "review": ("approved", "user_has_approved"),
        "conversation": ("individual_note", "notes[].resolvable", "notes[].resolved"),
        "files": ("[].new_path",),
        "check": ("status", "name", "description", "allow_failure", "target_url"),
        "comment": ("body", "author.username", "system"),
        "reactions": ("[].name", "[].user.username"),
        "labels": ("labels",),
        "merge": ("state", "squash", "squash_on_merge"),
    }

    def _client(self, token: str) -> Client:
        return Client(self.access.api_url, {"private-token": token}, self.budget, self.access.ca_file)

    def _read_login(self, client: Client) -> str:
        return client.send("GET", "/user").must_succeed().body["username"]

    @property
    def _project(self) -> str:
        return f"/projects/{quote(self.path, safe='')}"

    def _request(self, number: int) -> str:
        return f"{self._project}/merge_requests/{number}"

    @property
    def can_require_approvals(self) -> bool:
        """The free plan has no approval rules."""
        return super().can_require_approvals and self.access.is_premium

    # The repository

    def create_repository(self) -> Reply:
        namespaces = self.send("GET", f"/namespaces?search={quote(self.owner, safe='')}&per_page=100").must_succeed()
        found = [one["id"] for one in namespaces.body if one["full_path"].lower() == self.owner.lower()]
        if not found:
            raise NotRun(f"the account cannot use the group or user {self.owner}: correct --owner")
        members: dict[str, Any] = {"name": self.name, "namespace_id": found[0], "auto_devops_enabled": False}
        members["visibility"] = "private" if self.access.is_private else "public"
        return self.send("POST", "/projects", members)

    def delete_repository(self) -> Reply:
        """GitLab can keep a deleted project for some days. The second request asks to delete it now, and GitLab can
        refuse that."""
        found = self.read_repository()
        return self._delete(found.body["id"], ADMIN) if found.succeeded else found

    def delete_fork(self) -> Reply:
        found = self.send("GET", f"/projects/{quote(self.fork_path, safe='')}", who=SECOND)
        return self._delete(found.body["id"], SECOND) if found.succeeded else found

    def _delete(self, number: int, who: str) -> Reply:
        reply = self.send("DELETE", f"/projects/{number}", who=who)
        left = self.send("GET", f"/projects/{number}", who=who)
        if reply.succeeded and left.succeeded:
            path = left.body["path_with_namespace"]
            query = f"permanently_remove=true&full_path={quote(path, safe='')}"
            if not self.send("DELETE", f"/projects/{number}?{query}", who=who).succeeded:
                self.cleanup_notes.append(f"GitLab keeps {path} for some days, marked for deletion.")
        return reply

    def rename(self, name: str) -> Reply:
        return self.send("PUT", self._project, {"name": name, "path": name})

    def read_repository(self, path: str = "", who: str = ADMIN) -> Reply:
        return self.send("GET", f"/projects/{quote(path or self.path, safe='')}", who=who)

    def admit_second(self) -> None:
        number = self.send("GET", "/user", who=SECOND).must_succeed().body["id"]
        reply = self.send("POST", f"{self._project}/members", {"user_id": number, "access_level": DEVELOPER})
        if reply.status != 409:  # a member of the group is one already
            reply.must_succeed()

    def protect(self, approvals: int) -> Reply:
        """GitLab protects the first branch itself, and changes a rule only if it is removed first."""
        self.unprotect()
        settings = {"pipeline_succeeds": True, "all_discussions_are_resolved": False}
        self.send(
            "PUT", self._project, {f"only_allow_merge_if_{name}": value for name, value in settings.items()}
        ).must_succeed()
        if approvals:
            rule = {"name": "All members", "rule_type": "any_approver", "approvals_required": approvals}
            reply = self.send("POST", f"{self._project}/approval_rules", rule)
            if reply.status != 400:  # a project of an earlier run has the rule already
                reply.must_succeed()
        return self._protect_main()

    def _protect_main(self, **members: bool) -> Reply:
        levels = {"push_access_level": MAINTAINER, "merge_access_level": DEVELOPER}
        return self.send("POST", f"{self._project}/protected_branches", {"name": "main", **levels, **members})

    def unprotect(self) -> None:
        self.send("DELETE", f"{self._project}/protected_branches/main")

    def read_rules(self) -> Reply:
        return self.send("GET", f"{self._project}/repository/branches/main")

    def add_webhook(self, url: str, secret: str) -> Reply:
        members: dict[str, Any] = {"url": f"{url}/hooks/gitlab/{self.access.host_name}", "token": secret}
        return self.send("POST", f"{self._project}/hooks", members | dict.fromkeys(EVENTS, True))

    def list_open(self) -> Reply:
        """As Mergeyard asks for it when it polls."""
        query = "state=opened&scope=all&order_by=updated_at&sort=desc&per_page=100"
        return self.send("GET", f"{self._project}/merge_requests?{query}")

    # Merge requests

    def open(self, branch: str, title: str, *, who: str = ADMIN, from_fork: bool = False) -> Reply:
        members: dict[str, Any] = {"source_branch": branch, "target_branch": "main", "title": title}
        if not from_fork:
            return self.send("POST", f"{self._project}/merge_requests", members, who)
        members["target_project_id"] = self.read_repository().must_succeed().body["id"]
        return self.send("POST", f"/projects/{quote(self.fork_path, safe='')}/merge_requests", members, who)

    def number_of(self, reply: Reply) -> int:
        return reply.must_succeed().body["iid"]

    def read(self, number: int, who: str = ADMIN) -> Reply:
        return self.send("GET", self._request(number), who=who)

    def is_settled(self, reply: Reply) -> bool:
        return reply.body["detailed_merge_status"] not in UNSETTLED

    def is_merged(self, reply: Reply) -> bool:
        return reply.body["state"] == "merged"

    def list_by_branch(self, branch: str) -> Reply:
        source = quote(branch, safe="")
        return self.send("GET", f"{self._project}/merge_requests?state=all&source_branch={source}")

    def close_all(self) -> None:
        for one in self.send("GET", f"{self._project}/merge_requests?state=opened&per_page=50").must_succeed().body:
            self.send("PUT", self._request(one["iid"]), {"state_event": "close"})

    def approve(self, number: int, who: str = SECOND) -> Reply:
        return self.send("POST", f"{self._request(number)}/approve", {}, who)

    def request_changes(self, number: int) -> Reply:
        """Only a reviewer can. There is no request for it, but a command in a comment."""
        reviewer = str(self.send("GET", "/user", who=SECOND).must_succeed().body["id"])
        self.send("PUT", self._request(number), {"reviewer_ids": reviewer}).must_succeed()
        return self.comment(number, "Changes, please.\n\n/submit_review requested_changes", SECOND)

    def withdraw_approval(self, number: int, approval: Reply) -> Reply:  # noqa: ARG002
        return self.send("POST", f"{self._request(number)}/unapprove", {}, SECOND)

    def require_conversations(self) -> None:
        self.send("PUT", self._project, {"only_allow_merge_if_all_discussions_are_resolved": True}).must_succeed()

    def start_conversation(self, number: int, path: str) -> Reply:  # noqa: ARG002
        return self.send("POST", f"{self._request(number)}/discussions", {"body": "Why?"})

    def resolve_conversation(self, number: int, started: Reply) -> Reply:
        return self.send("PUT", f"{self._request(number)}/discussions/{started.body['id']}", {"resolved": True})

    def require_code_owner(self, path: str) -> None:
        self.need_approvals("a code owner")
        assert self.push_to_main({"CODEOWNERS": f"/{path} @{self.logins[SECOND]}\n"}).succeeded
        self.unprotect()
        self._protect_main(code_owner_approval_required=True).must_succeed()

    def list_files(self, number: int) -> Reply:
        return self.send("GET", f"{self._request(number)}/diffs")

    def read_approvals(self, number: int) -> Reply:
        return self.send("GET", f"{self._request(number)}/approvals")

    def set_squash(self, number: int) -> Reply:
        return self.send("PUT", self._request(number), {"squash": True})

    def merge_without_squash(self, number: int) -> Reply:
        return self.send("PUT", f"{self._request(number)}/merge", {"squash": False})

    def comment(self, number: int, text: str, who: str = ADMIN) -> Reply:
        return self.send("POST", f"{self._request(number)}/notes", {"body": text}, who)

    def list_comments(self, number: int) -> Reply:
        return self.send("GET", f"{self._request(number)}/notes?sort=asc&per_page=100")

    def list_reactions(self, number: int, comment: int) -> Reply:
        return self.send("GET", f"{self._request(number)}/notes/{comment}/award_emoji")

    def label(self, number: int) -> Reply:
        return self.send("PUT", self._request(number), {"add_labels": LABEL})

    def labels(self, number: int) -> list[str]:
        return self.read(number).must_succeed().body["labels"]

    def report(self, sha: str, state: str, *, check: str = CHECK, who: str = ADMIN) -> Reply:
        members = {"name": check, "state": STATES.get(state, state)}
        return self.send("POST", f"{self._project}/statuses/{sha}", members, who)

    def list_checks(self, sha: str) -> Reply:
        return self.send("GET", f"{self._project}/repository/commits/{sha}/statuses?per_page=100")

    def check_states(self, reply: Reply) -> dict[str, str]:
        return {one["name"]: one["status"] for one in reply.must_succeed().body}

    def fork(self) -> Reply:
        reply = self.send("POST", f"{self._project}/fork", {}, SECOND)
        self.fork_path = reply.must_succeed().body["path_with_namespace"]
        return reply


def to_gitlab(stage: Stage) -> LiveGitlab:
    assert isinstance(stage.host, LiveGitlab)
    return stage.host
