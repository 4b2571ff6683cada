"""The real git, host, runner and sender, whose every act may be the last."""

from collections.abc import Collection, Mapping
from pathlib import Path

from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.adapters.runner_local.runner import LocalRunner
from mergeyard.adapters.tell_webhooks.sender import HttpSender
from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.git import PushOutcome, RefUpdate
from mergeyard.ports.runner import Job, Result
from mergeyard.ports.sending import Response
from tests.kills.naming import LANDING, push_kind
from tests.kills.orders import Moment
from tests.kills.reaper import REAPER


class MortalGit(GitCli):
    async def _make(self, path: Path) -> None:
        with REAPER.passing("git.mirror_made"):
            await super()._make(path)


class MortalMirror(CliMirror):
    async def fetch(self, refs: Collection[str]) -> Mapping[str, Sha]:
        with REAPER.passing("git.fetch"):
            return await super().fetch(refs)

    async def push(self, *updates: RefUpdate) -> PushOutcome:
        kind, first = push_kind(updates), updates[0]
        if kind == LANDING and first.old is not None:
            REAPER.let_a_rival_push(first.ref, first.old, self.remote.url)
        with REAPER.passing(f"git.push:{kind}"):
            return await super().push(*updates)

    async def export(self, commit: Sha, folder: str) -> None:
        with REAPER.passing("git.export"):
            await super().export(commit, folder)


class MortalHost(PlainHost):
    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        with REAPER.passing("host.mark_merged"):
            await super().mark_merged(repo, number, head, commit)

    async def close(self) -> None:
        with REAPER.passing("host.close"):
            await super().close()


class MortalRunner(LocalRunner):
    async def start(self, job: Job) -> None:
        with REAPER.passing("check.start"):
            await super().start(job)

    async def stop(self, run: RunId) -> None:
        with REAPER.passing("check.stop"):
            await super().stop(run)

    async def next_result(self) -> Result:
        result = await super().next_result()
        REAPER.reach(Moment.AFTER, "check.began" if result.state is StatusState.PENDING else "check.ended")
        return result

    async def close(self) -> None:
        with REAPER.passing("check.close"):
            await super().close()


class MortalSender(HttpSender):
    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        with REAPER.passing("webhook.send"):
            return await super().send(url, headers, body)
