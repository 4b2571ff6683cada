"""Host diagnostics report what is missing, and end after a timeout."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom, Finding, HostUnavailable
from mergeyard.service.repositories import diagnose_host
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
    return await diagnose_host(host, repo, seconds)


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
