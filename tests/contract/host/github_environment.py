"""A test environment on the fake GitHub, with a user's token or as an app."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from msgspec.structs import replace

from mergeyard.adapters.forges.github import auth
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.http import App, ForgeConfig
from mergeyard.domain.ids import Repo, Sha
from mergeyard.ports.external import Clock
from tests.support.clock import ManualClock
from tests.support.forges.github.fake import ALL_PERMISSIONS, FakeGithub
from tests.support.forges.github.world import PullRequest, RegisteredApp

NAME = "github.example"
SECRET = "between us"
TOKEN = "github_pat_of_ada"
APP = "4711"
INSTALLATION = 99
EVENTS = list[str](auth.EVENTS)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleQ=="
FINGERPRINT = "SHA256:" + "x" * 43


class FakeSigner:
    """A key whose signatures are not needed."""

    def __init__(self, public_key: str = KEY, fingerprint: str = FINGERPRINT) -> None:
        self.public_key = public_key
        self.fingerprint = fingerprint
        self.expires_at = float("inf")

    def sign(self, payload: bytes, namespace: str) -> str:
        raise AssertionError(payload, namespace)

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        raise AssertionError(payload, at)


class GithubEnvironment:
    def __init__(self, github: FakeGithub, access: ForgeConfig) -> None:
        self.github = github
        self.access = access
        self.acme = github.create_repository("acme/app")
        self.acme.roles["ada"] = "admin"
        self.origin = self.acme.origin
        self.repo = Repo(NAME, "acme", "app")

    def make_host(self, clock: Clock | None = None, **access: Any) -> GithubHost:
        return GithubHost(replace(self.access, **access), clock or self.github.clock)

    @asynccontextmanager
    async def host(self, clock: Clock | None = None, **access: Any) -> AsyncGenerator[GithubHost]:
        host = self.make_host(clock, **access)
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """GitHub assigns the numbers in order."""
        files = data.pop("files", {f"{number}.txt": "1"})
        base = data.get("base", "main")
        if self.origin.ref(base) is None:
            self.origin.branch(base, base="main")
        self.origin.branch(f"topic-{number}", base="main", files=files)
        change = self.acme.open_pull_request(f"topic-{number}", **data)
        assert change.number == number
        return change.head

    def push(self, number: int) -> Sha:
        return self.acme.push_commit(f"topic-{number}", {f"{number}.txt": self.change(number).head})

    def close(self, number: int) -> None:
        self.acme.close(number)

    def land(self, number: int) -> Sha:
        change = self.change(number)
        return self.acme.push_commit(change.base, {f"{number}.txt": "1"}, merging=change.head)

    def change(self, number: int = 1) -> PullRequest:
        return self.acme.pull_requests[number]


@contextmanager
def github_environment(root: Path, clock: Clock | None = None) -> Generator[GithubEnvironment]:
    with FakeGithub(root, clock or ManualClock()) as github:
        github.add_token(TOKEN, "ada")
        yield GithubEnvironment(github, forge_config(github, token=TOKEN))


@contextmanager
def github_app_environment(root: Path, clock: Clock | None = None) -> Generator[GithubEnvironment]:
    with FakeGithub(root, clock or ManualClock()) as github:
        app = RegisteredApp(id=APP, public_key=keys()[1], permissions=dict(ALL_PERMISSIONS), events=EVENTS)
        app.installations["acme"] = INSTALLATION
        github.register_app(app)
        yield GithubEnvironment(github, forge_config(github, app=App(APP, keys()[0])))


def forge_config(github: FakeGithub, **secrets: Any) -> ForgeConfig:
    return ForgeConfig(name=NAME, web_url=github.web_url, api_url=github.api_url, webhook_secret=SECRET, **secrets)


@cache
def keys() -> tuple[str, str]:
    """A private key and its public key; cached, because generating them is slow."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
