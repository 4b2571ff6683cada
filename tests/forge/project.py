"""A repository on a real forge, and what people do there: push, open pull requests, comment, label, review, protect."""

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mergeyard.domain.ids import Sha
from tests.support.patience import eventually
from tests.support.repositories import ENVIRONMENT, Files, Origin, full


class Voice(Protocol):
    url: str

    def asks(self, method: str, path: str, body: Any = None, person: str | None = None) -> Any: ...

    def account(self, name: str) -> None: ...

    def token_of(self, name: str, *scopes: str) -> str: ...


class Project:
    def __init__(self, voice: Voice, owner: str, name: str, folder: Path) -> None:
        self.owner, self.name = owner, name
        self.origin = Origin.made(folder / f"{owner}-{name}.git")
        """What we pushed, and will push."""
        self._voice = voice
        self._token = voice.token_of(owner, "write:repository")

    # What is in it.

    def commit(self, branch: str, files: Files, *, upon: str | None = None) -> Sha:
        """One more commit on a branch, pushed; `upon` is where a new branch starts."""
        if upon is not None:
            self.origin.set(branch, self.origin.tip(upon))
        sha = self.origin.commit(branch, files)
        self.push(branch)
        return sha

    def push(self, *places: str) -> None:
        self._git("push", "--quiet", "--force", *(f"{full(place)}:{full(place)}" for place in places))

    def remove(self, branch: str) -> None:
        self._git("push", "--quiet", "--delete", branch)

    def fetch(self, branch: str) -> Sha:
        """Where a branch is there now; here too, from now on."""
        self._git("fetch", "--quiet", f"+{full(branch)}:{full(branch)}")
        return self.origin.tip(branch)

    def refs(self) -> dict[str, Sha]:
        lines = self._git("ls-remote", "--quiet").splitlines()
        return {ref: Sha(sha) for sha, ref in (line.split("\t") for line in lines)}

    def fork(self, person: str, folder: Path) -> "Project":
        """Their own copy of it."""
        self.ask("POST", "/forks", {}, person)
        fork = Project(self._voice, person, self.name, folder)
        fork.fetch("main")
        return fork

    # Pull requests.

    def open(self, branch: str, files: Files | None = None, **facts: Any) -> int:
        """A pull request from this branch, which is made with one commit if there are files; gives its number."""
        person, base = facts.pop("author", self.owner), facts.pop("base", "main")
        if files is not None:
            self.commit(branch, files, upon=base)
        told = {"title": "A change", "head": branch, "base": base} | facts
        return self.ask("POST", "/pulls", told, person)["number"]

    def pull(self, number: int) -> Any:
        return self.ask("GET", f"/pulls/{number}")

    def change_pull(self, number: int, **facts: Any) -> None:
        self.ask("PATCH", f"/pulls/{number}", facts)

    def until_checked(self, number: int) -> None:
        """The forge looks by itself whether it can be merged, a moment after each push."""
        eventually(lambda: self.pull(number)["mergeable"], but=lambda: self.pull(number))

    def pushes_noted(self, number: int) -> int:
        """How many pushes the forge has taken note of since it was opened."""
        events: list[Any] = self.ask("GET", f"/issues/{number}/timeline") or []
        return sum(event["type"] == "pull_push" for event in events)

    def review(self, number: int, person: str, event: str) -> None:
        self.ask("POST", f"/pulls/{number}/reviews", {"event": event, "body": "seen"}, person)

    def comment(self, number: int, person: str, text: str) -> int:
        return self.ask("POST", f"/issues/{number}/comments", {"body": text}, person)["id"]

    def comments(self, number: int) -> list[str]:
        return [said["body"] for said in self.ask("GET", f"/issues/{number}/comments")]

    def reactions(self, comment: int) -> list[str]:
        found: list[Any] = self.ask("GET", f"/issues/comments/{comment}/reactions") or []
        return [each["content"] for each in found]

    def label(self, number: int, name: str) -> None:
        known = {label["name"]: label["id"] for label in self.ask("GET", "/labels")}
        if name not in known:
            known[name] = self.ask("POST", "/labels", {"name": name, "color": "#00aabb"})["id"]
        self.ask("POST", f"/issues/{number}/labels", {"labels": [known[name]]})

    def labels(self, number: int) -> list[str]:
        return [label["name"] for label in self.ask("GET", f"/issues/{number}/labels")]

    # Checks and rules.

    def report(self, sha: Sha, context: str, state: str, **facts: Any) -> None:
        """As CI does."""
        self.ask("POST", f"/statuses/{sha}", {"context": context, "state": state} | facts)

    def statuses(self, sha: Sha) -> dict[str, str]:
        found: list[Any] = self.ask("GET", f"/commits/{sha}/status")["statuses"] or []
        return {each["context"]: each["status"] for each in found}

    def protect(self, branch: str, contexts: Sequence[str] = (), **facts: Any) -> None:
        """By a new rule. Everybody who writes may push, unless the facts say otherwise."""
        told = {"rule_name": branch, "enable_push": True, "enable_status_check": bool(contexts)}
        self.ask("POST", "/branch_protections", told | {"status_check_contexts": contexts} | facts)

    def change(self, facts: dict[str, Any]) -> None:
        self.ask("PATCH", "", facts)

    def admit(self, person: str, role: str) -> None:
        self._voice.account(person)
        self.ask("PUT", f"/collaborators/{person}", {"permission": role})

    def send_news_to(self, address: str, secret: str, *events: str) -> None:
        config = {"url": address, "content_type": "json", "secret": secret}
        self.ask("POST", "/hooks", {"type": "gitea", "config": config, "events": events, "active": True})

    def ask(self, method: str, path: str, body: Any = None, person: str | None = None) -> Any:
        return self._voice.asks(method, f"/repos/{self.owner}/{self.name}{path}", body, person or self.owner)

    def _git(self, verb: str, *arguments: str) -> str:
        options = [word for word in arguments if word.startswith("--")]
        refs = [word for word in arguments if not word.startswith("--")]
        command = ["git", "--git-dir", str(self.origin.path), verb, *options, self._url, *refs]
        proof = base64.b64encode(f"{self.owner}:{self._token}".encode()).decode()
        config = {"COUNT": "1", "KEY_0": "http.extraHeader", "VALUE_0": f"Authorization: Basic {proof}"}
        env = ENVIRONMENT | {f"GIT_CONFIG_{name}": value for name, value in config.items()}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    @property
    def _url(self) -> str:
        return f"{self._voice.url}/{self.owner}/{self.name}.git"
