"""A repository on a real forge, with what users do there: push, open pull requests, comment, label, review, protect."""

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mergeyard.domain.ids import Sha
from tests.support.polling import eventually
from tests.support.repositories import ENVIRONMENT, Files, Origin, full_ref


class ForgeClient(Protocol):
    url: str

    def request(self, method: str, path: str, body: Any = None, user: str | None = None) -> Any: ...

    def ensure_account(self, name: str) -> None: ...

    def token_of(self, name: str, *scopes: str) -> str: ...


class Project:
    def __init__(self, client: ForgeClient, owner: str, name: str, folder: Path) -> None:
        self.owner, self.name = owner, name
        self.origin = Origin.create(folder / f"{owner}-{name}.git")
        """The local copy from which branches are pushed."""
        self._client = client

    # Content.

    def commit(self, branch: str, files: Files, *, base: str | None = None) -> Sha:
        """Adds a commit to a branch and pushes it. With a base, the branch is created there first."""
        if base is not None:
            self.origin.set_ref(branch, self.origin.tip(base))
        sha = self.origin.commit(branch, files)
        self.push(branch)
        return sha

    def push(self, *refs: str) -> None:
        self._git("push", "--quiet", "--force", *(f"{full_ref(ref)}:{full_ref(ref)}" for ref in refs))

    def push_as(self, user: str, commit: Sha, branch: str, *options: str) -> bool:
        """Whether this user can push the commit to the branch."""
        try:
            self._git("push", "--quiet", *options, f"{commit}:{full_ref(branch)}", user=user)
        except subprocess.CalledProcessError:
            return False
        return True

    def remove(self, branch: str) -> None:
        self._git("push", "--quiet", "--delete", branch)

    def fetch(self, branch: str) -> Sha:
        """Fetches a branch from the forge into the local copy, and returns its tip."""
        self._git("fetch", "--quiet", f"+{full_ref(branch)}:{full_ref(branch)}")
        return self.origin.tip(branch)

    def refs(self) -> dict[str, Sha]:
        lines = self._git("ls-remote", "--quiet").splitlines()
        return {ref: Sha(sha) for sha, ref in (line.split("\t") for line in lines)}

    def fork(self, user: str, folder: Path) -> "Project":
        """Forks it for this user."""
        self.request("POST", "/forks", {}, user)
        fork = Project(self._client, user, self.name, folder)
        fork.fetch("main")
        return fork

    # Pull requests.

    def open(self, branch: str, files: Files | None = None, **options: Any) -> int:
        """Opens a pull request and returns its number. With `files`, the branch is created first, with one commit."""
        user, base = options.pop("author", self.owner), options.pop("base", "main")
        if files is not None:
            self.commit(branch, files, base=base)
        members = {"title": "A change", "head": branch, "base": base} | options
        return self.request("POST", "/pulls", members, user)["number"]

    def pull_request(self, number: int) -> Any:
        return self.request("GET", f"/pulls/{number}")

    def changed_files(self, number: int) -> list[str]:
        """What the forge shows as the changes of a pull request."""
        files: list[Any] = self.request("GET", f"/pulls/{number}/files") or []
        return [file["filename"] for file in files]

    def update_pull_request(self, number: int, **options: Any) -> None:
        self.request("PATCH", f"/pulls/{number}", options)

    def wait_until_checked(self, number: int) -> None:
        """The forge computes mergeability a moment after each push."""
        eventually(lambda: self.pull_request(number)["mergeable"], describe=lambda: self.pull_request(number))

    def recorded_pushes(self, number: int) -> int:
        """How many pushes the forge has recorded since the pull request was opened."""
        events: list[Any] = self.request("GET", f"/issues/{number}/timeline") or []
        return sum(event["type"] == "pull_push" for event in events)

    def review(self, number: int, user: str, event: str) -> int:
        """Returns the number of the review."""
        return self.request("POST", f"/pulls/{number}/reviews", {"event": event, "body": "seen"}, user)["id"]

    def dismiss(self, number: int, review: int) -> None:
        self.request("POST", f"/pulls/{number}/reviews/{review}/dismissals", {"message": "not yet", "priors": False})

    def request_review(self, number: int, user: str) -> None:
        self.request("POST", f"/pulls/{number}/requested_reviewers", {"reviewers": [user]})

    def depend(self, number: int, on: int) -> None:
        """The first pull request must not be merged before the second is closed."""
        self.request("POST", f"/issues/{number}/dependencies", {"owner": self.owner, "repo": self.name, "index": on})

    def comment(self, number: int, user: str, text: str) -> int:
        return self.request("POST", f"/issues/{number}/comments", {"body": text}, user)["id"]

    def edit_comment(self, comment: int, user: str, text: str) -> None:
        self.request("PATCH", f"/issues/comments/{comment}", {"body": text}, user)

    def comments(self, number: int) -> list[str]:
        return [comment["body"] for comment in self.request("GET", f"/issues/{number}/comments")]

    def reactions(self, comment: int) -> list[str]:
        found: list[Any] = self.request("GET", f"/issues/comments/{comment}/reactions") or []
        return [each["content"] for each in found]

    def label(self, number: int, name: str) -> None:
        known = {label["name"]: label["id"] for label in self.request("GET", "/labels")}
        if name not in known:
            known[name] = self.request("POST", "/labels", {"name": name, "color": "#00aabb"})["id"]
        self.request("POST", f"/issues/{number}/labels", {"labels": [known[name]]})

    def labels(self, number: int) -> list[str]:
        return [label["name"] for label in self.request("GET", f"/issues/{number}/labels")]

    # Checks and rules.

    def report(self, sha: Sha, context: str, state: str, **options: Any) -> None:
        """Reports a commit status, as CI does."""
        self.request("POST", f"/statuses/{sha}", {"context": context, "state": state} | options)

    def statuses(self, sha: Sha) -> dict[str, str]:
        found: list[Any] = self.request("GET", f"/commits/{sha}/status")["statuses"] or []
        return {each["context"]: each["status"] for each in found}

    def protect(self, branch: str, contexts: Sequence[str] = (), /, **options: Any) -> None:
        """Adds a rule. Any user with write access can push, unless `options` says otherwise."""
        members = {"rule_name": branch, "enable_push": True, "enable_status_check": bool(contexts)}
        self.request("POST", "/branch_protections", members | {"status_check_contexts": contexts} | options)

    def update_settings(self, options: dict[str, Any]) -> None:
        self.request("PATCH", "", options)

    def add_collaborator(self, user: str, role: str) -> None:
        self._client.ensure_account(user)
        self.request("PUT", f"/collaborators/{user}", {"permission": role})

    def add_webhook(self, url: str, secret: str, *events: str) -> None:
        config = {"url": url, "content_type": "json", "secret": secret}
        self.request("POST", "/hooks", {"type": "gitea", "config": config, "events": events, "active": True})

    def request(self, method: str, path: str, body: Any = None, user: str | None = None) -> Any:
        return self._client.request(method, f"/repos/{self.owner}/{self.name}{path}", body, user or self.owner)

    def _git(self, verb: str, *arguments: str, user: str = "") -> str:
        options = [word for word in arguments if word.startswith("--")]
        refs = [word for word in arguments if not word.startswith("--")]
        command = ["git", "--git-dir", str(self.origin.path), verb, *options, self._url, *refs]
        token = self._client.token_of(user or self.owner, "write:repository")
        credentials = base64.b64encode(f"{user or self.owner}:{token}".encode()).decode()
        config = {"COUNT": "1", "KEY_0": "http.extraHeader", "VALUE_0": f"Authorization: Basic {credentials}"}
        env = ENVIRONMENT | {f"GIT_CONFIG_{name}": value for name, value in config.items()}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    @property
    def _url(self) -> str:
        return f"{self._client.url}/{self.owner}/{self.name}.git"
