"""The administrator of a real Gitea or Forgejo, who creates accounts and sends requests for any of them.

admin = GiteaAdmin(server.url, server.admin_token)
project = admin.create_project("acme", "app", tmp_path)
number = project.open("topic", {"a.txt": "1"}, author="grace")
"""

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.ports.git import Signer
from tests.forge.project import Project

PASSWORD = "not-a-secret-1"
REQUEST_TIMEOUT_S = 30
BOT = "mergeyard-bot"
HOST = "gitea.local"
TOKEN_PATTERN = re.compile(r'readonly="" value="([0-9a-f]{64})"')
SCOPES = ("write:repository", "write:issue", "read:user")
"""The scopes that the service needs, and no others."""


class GiteaAdmin:
    def __init__(self, url: str, admin_token: str) -> None:
        self.url, self.admin_token = url.rstrip("/"), admin_token
        self._client = httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers={"authorization": f"token {admin_token}"},
            timeout=REQUEST_TIMEOUT_S,
            trust_env=False,
            verify=self.url.startswith("https"),
        )
        self._accounts: set[str] = set()
        self._tokens: dict[tuple[str, tuple[str, ...]], str] = {}

    def close(self) -> None:
        self._client.close()

    def create_project(self, owner: str, name: str, folder: Path) -> Project:
        """Creates a repository with one commit on `main`, which the bot of the service can administer."""
        self.ensure_account(owner)
        self.ensure_account(BOT)
        self.request("POST", "/user/repos", {"name": name, "default_branch": "main", "auto_init": True}, user=owner)
        project = Project(self, owner, name, folder)
        project.fetch("main")
        project.commit("main", {"a.txt": "1"})
        project.update_settings({"allow_manual_merge": True})
        project.add_collaborator(BOT, "admin")
        return project

    def ensure_account(self, name: str) -> None:
        """Creates the account if it does not exist."""
        if name in self._accounts:
            return
        self._accounts.add(name)
        if not self.send_request("GET", f"/users/{name}").is_success:
            members = {"username": name, "email": f"{name}@example.org", "password": PASSWORD}
            self.request("POST", "/admin/users", {**members, "must_change_password": False})

    def token_of(self, name: str, *scopes: str) -> str:
        """A token of an account that was created here."""
        if (name, scopes) not in self._tokens:
            self.ensure_account(name)
            members = {"name": f"token-{uuid4()}", "scopes": scopes}
            response = self._client.post(f"/users/{name}/tokens", json=members, auth=(name, PASSWORD))
            self._tokens[name, scopes] = response.raise_for_status().json()["sha1"]
        return self._tokens[name, scopes]

    def add_signing_key(self, name: str, signer: Signer) -> None:
        self.request("POST", "/user/keys", {"title": str(uuid4()), "key": signer.public_key}, user=name)

    def verify_signing_key(self, name: str, signer: Signer) -> None:
        """Signs a token that only a page of Gitea shows."""
        with httpx2.Client(base_url=self.url, timeout=REQUEST_TIMEOUT_S, trust_env=False) as browser:
            browser.post("/user/login", data={"user_name": name, "password": PASSWORD})
            page = browser.get("/user/settings/keys", params={"verify_ssh": signer.fingerprint}).text
            token = TOKEN_PATTERN.search(page)
            assert token
            form = {"type": "verify_ssh", "title": "none", "content": signer.public_key}
            form |= {"fingerprint": signer.fingerprint, "signature": signer.sign(token[1].encode(), "gitea")}
            assert browser.post("/user/settings/keys", data=form).is_redirect

    def forge_config(self, secret: str | None = None) -> ForgeConfig:
        """The configuration with which the service connects."""
        return ForgeConfig(
            name=HOST,
            web_url=self.url,
            api_url=f"{self.url}/api/v1",
            token=self.token_of(BOT, *SCOPES),
            webhook_secret=secret,
        )

    def request(self, method: str, path: str, body: Any = None, user: str | None = None) -> Any:
        """Sends a request that must succeed, and returns the response."""
        response = self.send_request(method, path, body, user)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def send_request(self, method: str, path: str, body: Any = None, user: str | None = None) -> httpx2.Response:
        if user is not None:
            self.ensure_account(user)
        headers = {} if user is None else {"sudo": user}
        return self._client.request(method, path, json=body, headers=headers)
