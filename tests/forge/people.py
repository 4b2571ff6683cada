"""People on a real Gitea or Forgejo: an administrator who makes accounts and speaks for everybody.

people = People(server.url, server.admin_token)
project = people.project("acme", "app", tmp_path)
number = project.open("topic", {"a.txt": "1"}, author="grace")
"""

from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from mergeyard.adapters.forges.access import Access
from tests.forge.project import Project

PASSWORD = "not-a-secret-1"
SECONDS = 30
BOT = "mergeyard-bot"
HOST = "gitea.local"
SCOPES = ("write:repository", "write:issue", "read:user")
"""What the service's token needs, and no more."""


class People:
    def __init__(self, url: str, admin_token: str) -> None:
        self.url = url.rstrip("/")
        self._client = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"authorization": f"token {admin_token}"},
            timeout=SECONDS,
            trust_env=False,
            verify=self.url.startswith("https"),
        )
        self._known: set[str] = set()
        self._tokens: dict[tuple[str, tuple[str, ...]], str] = {}

    def close(self) -> None:
        self._client.close()

    def project(self, owner: str, name: str, folder: Path) -> Project:
        """A new repository with one commit on `main`, which the service may administer."""
        self.account(owner)
        self.account(BOT)
        self.asks("POST", "/user/repos", {"name": name, "default_branch": "main", "auto_init": True}, person=owner)
        project = Project(self, owner, name, folder)
        project.fetch("main")
        project.commit("main", {"a.txt": "1"})
        project.change({"allow_manual_merge": True})
        project.admit(BOT, "admin")
        return project

    def account(self, name: str) -> None:
        """There is one of this name."""
        if name in self._known:
            return
        self._known.add(name)
        if not self.tells("GET", f"/users/{name}").is_success:
            facts = {"username": name, "email": f"{name}@example.org", "password": PASSWORD}
            self.asks("POST", "/admin/users", {**facts, "must_change_password": False})

    def token_of(self, name: str, *scopes: str) -> str:
        """Of an account that was made here."""
        if (name, scopes) not in self._tokens:
            self.account(name)
            facts = {"name": f"token-{uuid4()}", "scopes": scopes}
            made = self._client.post(f"/users/{name}/tokens", json=facts, auth=(name, PASSWORD))
            self._tokens[name, scopes] = made.raise_for_status().json()["sha1"]
        return self._tokens[name, scopes]

    def access(self, secret: str | None = None) -> Access:
        """How the service comes in."""
        return Access(
            name=HOST,
            pages=self.url,
            api=f"{self.url}/api/v1",
            token=self.token_of(BOT, *SCOPES),
            webhook_secret=secret,
        )

    def asks(self, method: str, path: str, body: Any = None, person: str | None = None) -> Any:
        """What the forge answers, who must do as told."""
        reply = self.tells(method, path, body, person)
        assert reply.is_success, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def tells(self, method: str, path: str, body: Any = None, person: str | None = None) -> httpx.Response:
        if person is not None:
            self.account(person)
        headers = {} if person is None else {"sudo": person}
        return self._client.request(method, path, json=body, headers=headers)
