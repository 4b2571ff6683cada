"""Authentication on GitHub: API clients per repository, app installations and their tokens, required permissions."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import jwt
from msgspec import Struct

from mergeyard.adapters.forges import http
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import Finding, HostAccessLost, HostRefused, HostUnavailable, RequestBudget

CLOCK_SKEW_S = 60
"""`iat` is set this far into the past, in case our clock is ahead of GitHub's."""
JWT_LIFETIME_S = 540
"""GitHub rejects lifetimes of more than ten minutes."""


def sign_app_jwt(app: http.App, now: Instant) -> str:
    seconds = now // SECOND
    claims = {"iat": seconds - CLOCK_SKEW_S, "exp": seconds + JWT_LIFETIME_S - CLOCK_SKEW_S, "iss": app.id}
    try:
        return jwt.encode(claims, _load_private_key(app.private_key), algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        raise HostUnavailable(
            f"the private key of app {app.id} is no RSA key in PEM form: use the file that GitHub provided when the "
            "key was generated"
        ) from error


@lru_cache(maxsize=8)
def _load_private_key(pem: str) -> Any:
    """Loading checks the key, which takes longer than many requests."""
    return jwt.get_algorithm_by_name("RS256").prepare_key(pem)


class RequiredPermission(Struct, frozen=True):
    permission: str
    level: str
    purpose: str

    @property
    def title(self) -> str:
        """As on GitHub's pages: `Commit statuses: Read and write`."""
        name = {"statuses": "Commit statuses"}.get(self.permission, self.permission.replace("_", " ").capitalize())
        return f"{name}: {'Read and write' if self.level == 'write' else 'Read-only'}"


REQUIRED_PERMISSIONS = (
    RequiredPermission("metadata", "read", "to find the repository"),
    RequiredPermission("contents", "write", "to push test branches and to merge tested commits"),
    RequiredPermission("workflows", "write", "to push pull requests that change files in .github/workflows"),
    RequiredPermission("pull_requests", "write", "to read, merge and comment on pull requests"),
    RequiredPermission("issues", "write", "to comment on pull requests and to remove their labels"),
    RequiredPermission("statuses", "write", "to read commit statuses and to set the queue's own"),
    RequiredPermission("checks", "read", "to read check runs, such as those of GitHub Actions"),
    RequiredPermission(
        "administration", "read", "to read from classic branch protection who must approve, and who can bypass that"
    ),
)
OPTIONAL_PERMISSIONS = (
    RequiredPermission("members", "read", "to read which teams of the organization must approve"),
    RequiredPermission("deployments", "read", "to read required deployments"),
)
"""Needed only where a rule of a branch requires the approval of a team, or a deployment."""
LEVELS = ("read", "write", "admin")
EVENTS = (
    "pull_request",
    "pull_request_review",
    "pull_request_review_thread",
    "issue_comment",
    "status",
    "check_run",
    "check_suite",
    "push",
)


def check_permissions(granted: Mapping[str, str], where: str) -> list[Finding]:
    """`where` names the page on which an administrator grants them."""
    return [_check_permission(need, granted.get(need.permission), where) for need in REQUIRED_PERMISSIONS]


def select_requestable_permissions(granted: Mapping[str, str]) -> dict[str, str]:
    """The permissions to request for a token: those we need, reduced to what is granted. GitHub refuses to issue a
    token with more than the installation has."""
    usable = (*REQUIRED_PERMISSIONS, *OPTIONAL_PERMISSIONS)
    levels = {need.permission: (need.level, granted.get(need.permission, "")) for need in usable}
    return {name: min(pair, key=LEVELS.index) for name, pair in levels.items() if pair[1] in LEVELS}


def check_events(subscribed: Collection[str], where: str) -> Finding:
    missing = [event for event in EVENTS if event not in subscribed and "*" not in subscribed]
    if not missing:
        return Finding(True, "The webhook sends all events that the queue uses.")
    message = f"The webhook does not send {join_with_and(missing)}: subscribe to these events {where}"
    return Finding(False, f"{message}. Until then the queue finds these changes only by polling, which takes longer.")


def join_with_and(items: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))


def _check_permission(need: RequiredPermission, level: str | None, where: str) -> Finding:
    if level in ("admin", "write", need.level):
        return Finding(True, f"{need.title} is granted.")
    return Finding(False, f"{need.title} is missing. It is needed {need.purpose}: grant it {where}.")


TOKEN_LIFETIME_MS = HOUR
RENEW_BEFORE_MS = 5 * MINUTE
REFUSED_STATUSES = (403, 404, 422)
"""The installation is gone or suspended, or it lost the repository or a permission."""


class AppNotInstalled(HostAccessLost):
    """The app has no access to this repository, or there is no such repository."""

    def __init__(self, repo: Repo) -> None:
        super().__init__(f"the app is not installed in {repo}: install it there, or add the repository to it")


class Installations:
    def __init__(self, app: http.ForgeClient, clock: Clock) -> None:
        """`app` is a client that authenticates as the app itself."""
        self._app = app
        self._clock = clock
        self._installations: dict[Repo, wire.Installation] = {}
        self._tokens: dict[Repo, wire.InstallationToken] = {}
        self._renewing = defaultdict[Repo, asyncio.Lock](asyncio.Lock)
        self._members_tokens: dict[int, wire.InstallationToken] = {}
        """By installation."""
        self._renewing_members = defaultdict[int, asyncio.Lock](asyncio.Lock)

    async def get_installation(self, repo: Repo, path: str) -> wire.Installation:
        """`path` is the API path of the repository."""
        if repo not in self._installations:
            installation = await self._app.get(f"{path}/installation", wire.Installation, urgent=True)
            if installation is None:
                raise AppNotInstalled(repo)
            self._installations[repo] = installation
        return self._installations[repo]

    async def get_token(self, repo: Repo, path: str) -> str:
        async with self._renewing[repo]:
            token = self._tokens.get(repo)
            if token is None or self._is_ending(token):
                token = self._tokens[repo] = await self._renew_token(repo, path)
            return token.token

    async def get_members_token(self, repo: Repo, path: str) -> str:
        """It can only read members of the organization. It is for the whole installation: users report that GitHub
        shows no teams to a token that is limited to repositories, also with the permission. Raises `HostRefused` if the
        installation lacks the permission."""
        installation = await self.get_installation(repo, path)
        if "members" not in installation.permissions:
            raise HostRefused(f"the app's installation {installation.id} lacks the permission to read members")
        async with self._renewing_members[installation.id]:
            token = self._members_tokens.get(installation.id)
            if token is None or self._is_ending(token):
                token = await self._request_token(repo, installation, {"permissions": {"members": "read"}})
                self._members_tokens[installation.id] = token
            return token.token

    def forget_members_token(self, repo: Repo) -> None:
        """After a 401."""
        installation = self._installations.get(repo)
        if installation is not None:
            self._members_tokens.pop(installation.id, None)

    def _is_ending(self, token: wire.InstallationToken) -> bool:
        return self._clock.now() >= http.to_instant(token.expires_at) - RENEW_BEFORE_MS

    def forget(self, repo: Repo) -> None:
        """After a 401 or a refusal: a new installation of the app has another id."""
        self._tokens.pop(repo, None)
        self._installations.pop(repo, None)

    def renew_if_old(self, repo: Repo) -> None:
        """After a read that a missing permission refused: a new token has the permissions that were granted since."""
        token = self._tokens.get(repo)
        if token is not None and http.to_instant(token.expires_at) < self._clock.now() + TOKEN_LIFETIME_MS - MINUTE:
            self.forget(repo)

    async def _renew_token(self, repo: Repo, path: str) -> wire.InstallationToken:
        if self._tokens.pop(repo, None) is not None:
            self._installations.pop(repo, None)  # its permissions may have changed since the last token
        installation = await self.get_installation(repo, path)
        body = {"repositories": [repo.name], "permissions": select_requestable_permissions(installation.permissions)}
        return await self._request_token(repo, installation, body)

    async def _request_token(
        self, repo: Repo, installation: wire.Installation, body: Mapping[str, Any]
    ) -> wire.InstallationToken:
        reply = await self._app.send("POST", f"/app/installations/{installation.id}/access_tokens", body, urgent=True)
        if reply.status in REFUSED_STATUSES:
            self.forget(repo)
            raise HostAccessLost(f"the app's installation {installation.id} gives no token for {repo}: {reply.detail}")
        return reply.raise_for_status().decode(wire.InstallationToken)


GITHUB_HEADERS = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
GIT_USER = "x-access-token"
FINE_GRAINED_PREFIX = "github_pat_"
PER_PAGE = {"per_page": 100}
KEY_ID_CHARS = 16
IDENTITY_START = "a verified identity "
FOREIGN_START = "committer_email "
SSH_KEY_START = ("ssh-", "ecdsa-", "sk-")


class Identity(Struct, frozen=True):
    """The account that we act as."""

    login: str
    app_id: int | None = None
    """None for the account of a token."""
    user_id: int | None = None
    """None for an app."""


class Authentication(ForgeHost):
    """GitHub counts the rate limit per installation for an app, and per account for a token. `self._client`
    authenticates as the app itself, or with the configured token."""

    def __init__(self, config: http.ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._clients: dict[int, http.ForgeClient] = {}
        self._installations = Installations(self._client, clock) if config.app else None
        self._identity: Identity | None = None
        self._address: str | None = None

    async def _client_for(self, repo: Repo) -> http.ForgeClient:
        path, repo, installations = self._api_path(repo), self.canonical_repo(repo), self._installations
        if installations is None:
            return self._client.for_repository(repo, path)
        installation = (await installations.get_installation(repo, path)).id
        if installation not in self._clients:
            self._clients[installation] = self._client.with_own_limits()

        async def build_headers() -> Mapping[str, str]:
            return _build_headers(await installations.get_token(repo, path))

        def on_unauthorized() -> None:
            installations.forget(repo)

        return self._clients[installation].for_repository(repo, path, build_headers, on_unauthorized)

    async def _members_client_for(self, repo: Repo) -> http.ForgeClient:
        """For the teams of the owner of a repository."""
        client, path, repo = await self._client_for(repo), self._api_path(repo), self.canonical_repo(repo)
        installations = self._installations
        if installations is None:
            return client.without_repository()

        async def build_headers() -> Mapping[str, str]:
            return _build_headers(await installations.get_members_token(repo, path))

        def on_unauthorized() -> None:
            installations.forget_members_token(repo)

        return client.for_repository(repo, path, build_headers, on_unauthorized).without_repository()

    def list_budgets(self) -> list[RequestBudget]:
        own = "token" if self._installations is None else "app"
        found = self._client.list_budgets(own)
        for installation, client in self._clients.items():
            found += client.list_budgets(f"installation {installation}")
        return found

    async def has_repository(self, repo: Repo) -> bool:
        try:
            return await super().has_repository(repo)
        except AppNotInstalled:
            return False

    async def _read_own_login(self) -> str:
        return (await self._read_identity()).login

    async def _read_identity(self) -> Identity:
        if self._identity is None and self._config.app is not None:
            app = await self._client.get("/app", wire.AppDetails, urgent=True)
            self._identity = app and Identity(f"{app.slug}[bot]", app.id)
        elif self._identity is None:
            user = await self._client.get("/user", wire.UserDetails, urgent=True)
            self._identity = user and Identity(user.login, user_id=user.id)
        if self._identity is None:
            raise HostUnavailable(f"{self.name} does not report the account of our credentials")
        return self._identity

    async def own_address(self, repo: Repo) -> str | None:
        """Cached indefinitely, as the account is. GitHub answers about users with the credentials of a repository."""
        if self._address is None:
            user = await self._read_user(await self._client_for(repo), await self._read_own_login())
            self._address = user and self._build_address(user)
        return self._address

    async def _read_user(self, client: http.ForgeClient, login: str) -> wire.UserDetails | None:
        """None if GitHub does not show the account to us."""
        path = f"/users/{http.quote_segment(login)}"
        try:
            return await client.without_repository().get(path, wire.UserDetails, urgent=True)
        except HostRefused:
            return None

    def _build_address(self, user: wire.UserDetails) -> str:
        """The address that GitHub gives every account, and shows with it. An enterprise server has its own name there:
        `users.noreply.git.example.com`."""
        return f"{user.id}+{user.login}@users.noreply.{urlsplit(self._config.web_url).hostname}"

    async def _find_missing_key(self, client: http.ForgeClient) -> str:
        """What GitHub needs to accept our signatures; empty if it accepts them. The account must have the key and the
        address of our commits, and a key of OpenPGP must have this address too (GitHub documents this as *Using a
        verified email address in your GPG key*)."""
        identity, signer = await self._read_identity(), self._config.signer
        if identity.app_id is not None:
            return f"GitHub accepts no keys of apps: let {identity.login.removesuffix('[bot]')} bypass the rule"
        problem = self._find_key_problem()
        if signer is None or problem:
            return problem
        users, path = client.without_repository(), f"/users/{http.quote_segment(identity.login)}"
        missing = f"{signer.fingerprint} of @{identity.login}"
        if signer.public_key.startswith(SSH_KEY_START):
            ssh = await users.get_all(f"{path}/ssh_signing_keys", list[wire.SshSigningKey], PER_PAGE, urgent=True)
            has_key = any(each.key.split()[:2] == signer.public_key.split()[:2] for each in ssh)
            return await self._find_foreign_address(client, identity.login) if has_key else missing
        key_id = signer.fingerprint[-KEY_ID_CHARS:].upper()
        gpg = await users.get_all(f"{path}/gpg_keys", list[wire.GpgKey], PER_PAGE, urgent=True)
        ours = [each for each in gpg if (each.key_id or "").upper() == key_id and not each.revoked]
        address = self._config.committer_email or (client.repo and await self.own_address(client.repo)) or ""
        if any(each.has_verified(address) for each in ours):
            return ""
        return f"{IDENTITY_START}{address} in the key {key_id}" if ours else missing

    async def _find_foreign_address(self, client: http.ForgeClient, login: str) -> str:
        """The configured address of our commits, unless GitHub shows that our account has it. GitHub shows other
        accounts only the public address of an account, and gives each one that does not receive mail."""
        address = (self._config.committer_email or "").casefold()
        if not address:
            return ""
        user = await self._read_user(client, login)
        own = [self._build_address(user), user.email or ""] if user else []
        is_own = address in (each.casefold() for each in own)
        return "" if is_own else f"{FOREIGN_START}{address}, which is no public address of @{login}"

    @property
    def _can_push_to_forks(self) -> bool:
        """GitHub lets accounts that can push to the upstream repository push to the branch of such a fork (*Allowing
        changes to a pull request branch created from a fork*). An installation of an app has access only to the
        repositories that it is installed in (*Authenticating as a GitHub App installation*), and a fine-grained token
        only to those of one owner (*Managing your personal access tokens*). That leaves classic tokens."""
        token = self._config.token if self._config.app is None else None
        return token is not None and not token.startswith(FINE_GRAINED_PREFIX)

    async def _credentials(self) -> Mapping[str, str]:
        return _build_headers(self._own_credential())

    async def _git_credentials(self, repo: Repo) -> tuple[str, str]:
        if self._installations is None:
            return GIT_USER, self._own_credential()
        return GIT_USER, await self._installations.get_token(self.canonical_repo(repo), self._api_path(repo))

    def _own_credential(self) -> str:
        match self._config:
            case http.ForgeConfig(app=http.App() as app):
                return sign_app_jwt(app, self._clock.now())
            case http.ForgeConfig(token=str(token)):
                return token
            case _:
                raise HostUnavailable(f"{self.name} has neither a token nor an app: configure one of them")


def _build_headers(token: str) -> Mapping[str, str]:
    return GITHUB_HEADERS | {"authorization": f"Bearer {token}"}
