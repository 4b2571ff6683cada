"""The stage on a GitHub that only looks like one, entered with somebody's token or as an app."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from msgspec.structs import replace

from mergeyard.adapters.forges.access import Access, App
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from tests.support.clock import HandClock
from tests.support.forges.github.facts import AppFacts, Change
from tests.support.forges.github.fake import EVERYTHING, FakeGithub

NAME = "github.example"
SECRET = "between us"
TOKEN = "github_pat_of_ada"
APP = "4711"
INSTALLATION = 99
EVENTS = ["pull_request", "pull_request_review", "issue_comment", "status", "check_run", "check_suite", "push"]


class GithubStage:
    def __init__(self, github: FakeGithub, access: Access) -> None:
        self.github = github
        self.access = access
        self.acme = github.repository("acme/app")
        self.acme.roles["ada"] = "admin"
        self.origin = self.acme.origin
        self.repo = Repo(NAME, "acme", "app")

    def made_host(self, clock: Clock | None = None, **access: Any) -> GithubHost:
        return GithubHost(replace(self.access, **access), clock or self.github.clock)

    @asynccontextmanager
    async def host(self, clock: Clock | None = None, **access: Any) -> AsyncGenerator[GithubHost]:
        host = self.made_host(clock, **access)
        try:
            yield host
        finally:
            await host.close()

    def open(self, number: int, **data: Any) -> Sha:
        """It gives the numbers itself, in order."""
        files = data.pop("files", {f"{number}.txt": "1"})
        base = data.get("base", "main")
        if self.origin.ref(base) is None:
            self.origin.branch(base, upon="main")
        self.origin.branch(f"topic-{number}", upon="main", files=files)
        change = self.acme.opens(f"topic-{number}", **data)
        assert change.number == number
        return change.head

    def push(self, number: int) -> Sha:
        return self.acme.commits(f"topic-{number}", {f"{number}.txt": self.change(number).head})

    def close(self, number: int) -> None:
        self.acme.closes(number)

    def land(self, number: int) -> Sha:
        change = self.change(number)
        return self.acme.commits(change.base, {f"{number}.txt": "1"}, merging=change.head)

    def change(self, number: int = 1) -> Change:
        return self.acme.changes[number]


@contextmanager
def github_stage(root: Path, clock: Clock | None = None) -> Generator[GithubStage]:
    with FakeGithub(root, clock or HandClock()) as github:
        github.token(TOKEN, "ada")
        yield GithubStage(github, access_to(github, token=TOKEN))


@contextmanager
def github_app_stage(root: Path, clock: Clock | None = None) -> Generator[GithubStage]:
    with FakeGithub(root, clock or HandClock()) as github:
        app = AppFacts(id=APP, public_key=keys()[1], permissions=dict(EVERYTHING), events=EVENTS)
        app.installed_in["acme"] = INSTALLATION
        github.register(app)
        yield GithubStage(github, access_to(github, app=App(APP, keys()[0])))


def access_to(github: FakeGithub, **secrets: Any) -> Access:
    return Access(name=NAME, pages=github.pages, api=github.api, webhook_secret=SECRET, **secrets)


@cache
def keys() -> tuple[str, str]:
    """A private key and its public one. Making them takes a while."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
