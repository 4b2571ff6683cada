"""A check of a host tells what is missing, and gives up in time."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import ChecksFrom, HostTrouble
from mergeyard.service.examining import examined
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin


class Silent(PlainHost):
    """Never answers."""

    async def knows(self, repo: Repo) -> bool:
        await asyncio.Event().wait()
        return await super().knows(repo)


class Broken(PlainHost):
    async def knows(self, repo: Repo) -> bool:
        raise HostTrouble(f"{repo} cannot be read")


async def told(host: PlainHost, repo: Repo | None, seconds: float = 9) -> Sequence[Finding]:
    return await examined(host, repo, seconds)


@asynchronous
async def test_a_folder_of_plain_repositories_needs_nothing_more(tmp_path: Path):
    host = PlainHost("git.local", tmp_path, ChecksFrom.API)
    (finding,) = await told(host, None)
    assert finding.fine


@asynchronous
async def test_a_repository_is_there_or_is_to_be_made(tmp_path: Path):
    Origin.made(tmp_path / "acme" / "app.git")
    host = PlainHost("git.local", tmp_path, ChecksFrom.API)
    assert await told(host, Repo("git.local", "acme", "app")) == [Finding(True, "git.local/acme/app is there.")]
    (missing,) = await told(host, Repo("git.local", "acme", "lib"))
    assert not missing.fine
    assert "make it below the root" in missing.words


@asynchronous
async def test_a_host_that_is_silent_or_broken_is_a_finding_too(tmp_path: Path):
    repo = Repo("git.local", "acme", "app")
    (silent,) = await told(Silent("git.local", tmp_path, ChecksFrom.API), repo, 0.01)
    assert silent == Finding(False, "git.local did not answer within 0.01 seconds. Ask again later.")
    (broken,) = await told(Broken("git.local", tmp_path, ChecksFrom.API), repo)
    assert not broken.fine
    assert "Check its address" in broken.words
