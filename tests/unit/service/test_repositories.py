"""Host diagnostics report what is missing, and end after a timeout; commits have the address of our account."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.git_cli import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom, Finding, HostUnavailable
from mergeyard.ports.git import Identity
from mergeyard.service.repositories import Repositories, diagnose_host
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin


class HangingHost(PlainHost):
    """Never responds."""

    async def has_repository(self, repo: Repo) -> bool:
        await asyncio.Event().wait()
        return await super().has_repository(repo)


class FailingHost(PlainHost):
    async def has_repository(self, repo: Repo) -> bool:
        raise HostUnavailable(f"{repo} cannot be read")


async def diagnose(host: PlainHost, repo: Repo | None, seconds: float = 9) -> Sequence[Finding]:
    return await diagnose_host(host, repo, timeout_s=seconds)


@asynchronous
async def test_a_folder_of_plain_repositories_has_no_problems(tmp_path: Path):
    host = PlainHost("git.local", tmp_path, ChecksFrom.API)
    (finding,) = await diagnose(host, None)
    assert finding.ok


@asynchronous
async def test_a_missing_repository_is_reported_with_what_to_do(tmp_path: Path):
    Origin.create(tmp_path / "acme" / "app.git")
    host = PlainHost("git.local", tmp_path, ChecksFrom.API)
    assert await diagnose(host, Repo("git.local", "acme", "app")) == [Finding(True, "git.local/acme/app exists.")]
    (missing,) = await diagnose(host, Repo("git.local", "acme", "lib"))
    assert not missing.ok
    assert "Create it below the root folder" in missing.message


@asynchronous
async def test_a_host_that_times_out_or_fails_is_a_finding(tmp_path: Path):
    repo = Repo("git.local", "acme", "app")
    (timed_out,) = await diagnose(HangingHost("git.local", tmp_path, ChecksFrom.API), repo, 0.01)
    assert timed_out == Finding(False, "git.local did not answer within 0.01 seconds. Try again later.")
    (failed,) = await diagnose(FailingHost("git.local", tmp_path, ChecksFrom.API), repo)
    assert not failed.ok
    assert "Check the address of git.local" in failed.message


class HostWithAccount(PlainHost):
    """Its account has this address; it fails if that is empty, and does not answer if it is None."""

    address: str | None = "bot@git.local"
    reads = 0

    async def own_address(self, repo: Repo) -> Any:  # noqa: ARG002
        self.reads += 1
        if self.address is None:
            await asyncio.Event().wait()
        if not self.address:
            raise HostUnavailable("git.local answered 500")
        return self.address


async def find_committer(repositories: Repositories) -> str:
    mirror = await repositories.open_mirror(Repo("git.local", "acme", "app"))
    (tip,) = (await mirror.fetch(["refs/heads/main"])).values()
    commit = await mirror.commit(await mirror.tree(tip), [tip], "New")
    author = (await mirror.read_commit(commit)).author
    return f"{author.name} <{author.email}>"


@pytest.fixture
def host(tmp_path: Path) -> HostWithAccount:
    Origin.create(tmp_path / "acme" / "app.git").commit("main", {"a": "1"})
    return HostWithAccount("git.local", tmp_path, ChecksFrom.API)


def repositories_of(host: PlainHost, tmp_path: Path, identity: Identity | None = None) -> Repositories:
    git = GitCli(tmp_path / "mirrors", Identity("Default", "default@example.org"))
    identities = {host.name: identity} if identity else {}
    return Repositories({host.name: host}, git, identities, address_timeout_s=0.01)


@asynchronous
async def test_commits_have_the_address_of_our_account_unless_one_is_configured(tmp_path: Path, host: HostWithAccount):
    repositories = repositories_of(host, tmp_path, Identity("Ada", ""))
    assert await find_committer(repositories) == "Ada <bot@git.local>"
    assert await find_committer(repositories) == "Ada <bot@git.local>"
    assert host.reads == 1
    repositories = repositories_of(host, tmp_path, Identity("Ada", "ada@example.org"))
    assert await find_committer(repositories) == "Ada <ada@example.org>"
    assert await find_committer(repositories_of(host, tmp_path)) == "Default <default@example.org>"
    assert host.reads == 1


@asynchronous
async def test_a_plain_host_has_no_account(tmp_path: Path, host: HostWithAccount):
    plain = PlainHost(host.name, tmp_path, ChecksFrom.API)
    assert await find_committer(repositories_of(plain, tmp_path, Identity("Ada", ""))) == "Ada <mergeyard@localhost>"


@pytest.mark.parametrize("address", ["bot", "@", "a@b\nparent x", "a@<b>", "a@b\0", "a b@c", f"a@{'b' * 1000}"])
@asynchronous
async def test_an_address_that_a_commit_cannot_have_is_not_used(tmp_path: Path, host: HostWithAccount, address: str):
    host.address = address
    assert await find_committer(repositories_of(host, tmp_path, Identity("Ada", ""))) == "Ada <mergeyard@localhost>"


@pytest.mark.parametrize("address", ["", None])
@asynchronous
async def test_commits_do_not_wait_for_a_host_without_answer(
    tmp_path: Path, host: HostWithAccount, address: str | None
):
    host.address = address
    repositories = repositories_of(host, tmp_path, Identity("Ada", ""))
    assert await find_committer(repositories) == "Ada <mergeyard@localhost>"
    assert await find_committer(repositories) == "Ada <mergeyard@localhost>"
    assert host.reads == 1


class ForgeWithAccount(HostWithAccount):
    """A Git host with accounts."""

    def __init__(self, name: str, root: Path) -> None:
        super().__init__(name, root, ChecksFrom.API)
        self.forge: Any = self


class NoSigner:
    """Nothing is signed with it."""


@pytest.mark.parametrize("address", ["", None, "a b@c"])
@asynchronous
async def test_signed_commits_wait_for_the_address_of_our_account(
    tmp_path: Path, host: HostWithAccount, address: str | None
):
    signer: Any = NoSigner()
    signed = Identity("Ada", "", signer)
    with_accounts = ForgeWithAccount(host.name, tmp_path)
    with_accounts.address = address
    repositories = repositories_of(with_accounts, tmp_path, signed)
    repo = Repo("git.local", "acme", "app")
    for _ in range(2):
        with pytest.raises(HostUnavailable, match=r"git\.local does not report the address .* Set committer_email"):
            await repositories.open_mirror(repo)
    with_accounts.address = "bot@git.local"
    await repositories.open_mirror(repo)
    assert with_accounts.reads == 3
    host.address = address
    await repositories_of(host, tmp_path, signed).open_mirror(repo)  # plain Git has no accounts
