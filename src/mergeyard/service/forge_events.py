"""Dispatches webhook notices of forges. A notice is only a hint: the service reads the facts from the Git host."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import structlog

from mergeyard.domain.events import Event, PullRequestDirty, TargetBranchDirty
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import MAX_REQUIREMENT_NAMES, PullRequest
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.ports.forge import (
    MAX_REQUIREMENT_NAME_CHARS,
    BranchNotice,
    CommitNotice,
    ForgeNotice,
    InvalidSignature,
    PullRequestNotice,
)
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.background import Background
from mergeyard.service.check_sources import ForgeCheckPoller
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories

log = structlog.get_logger()

WEBHOOK_NOT_VERIFIED = (
    "The signature of this webhook is missing or wrong, or no such Git host is configured: compare the webhook's URL "
    "and secret with the settings. The server log has the cause."
)
"""The same message for all causes, so that a client without the secret cannot find out which hosts are configured."""


@dataclass(eq=False)
class ForgeEventDispatcher:
    registry: QueueRegistry
    repositories: Repositories
    schedule_comments: Callable[[Repo, PullRequestNumber], None]
    check_poller: ForgeCheckPoller
    background: Background
    wake_poller: Callable[[Repo], None]
    """Called with the repository of every notice."""

    def build_parser(self, provider: str, name: str) -> Callable[[Mapping[str, str], bytes], Sequence[ForgeNotice]]:
        """Returns a function that verifies and parses a webhook of this Git host from its headers and raw body. The
        function can run in any thread."""
        host = self.repositories.hosts.get(name)
        forge = None if host is None or host.provider != provider else host.forge

        def parse(headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
            try:
                if forge is None:
                    raise InvalidSignature("no such host is configured")
                return forge.parse_webhook(headers, body)
            except InvalidSignature as error:
                raise RequestRefused(Code.INVALID_TOKEN, WEBHOOK_NOT_VERIFIED) from error

        return parse

    def dispatch(self, notices: Sequence[ForgeNotice]) -> None:
        """Returns at once: the forge does not wait until the notices are handled."""
        for notice in notices:
            self.wake_poller(notice.repo)
            self.background.start(self._dispatch(notice))

    async def _dispatch(self, notice: ForgeNotice) -> None:
        try:
            match notice:
                case PullRequestNotice():
                    await self._on_pull_request(notice.repo, notice.number)
                case BranchNotice():
                    await self._on_branch(notice.repo, notice.branch)
                case CommitNotice():
                    self.check_poller.on_commit_notice(notice.repo, notice.sha, notice.check)
                    await self._on_head(notice.repo, notice.sha, notice.check)
                case _:
                    assert_never(notice)
        except StoreUnavailable as error:
            log.warning("git_host_notice_lost", repo=str(notice.repo), error=str(error))

    async def _on_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:
        queue_actors = await self.registry.load_by_repo(repo)
        for queue_actor in queue_actors:
            if queue_actor.note_dirty(number):
                await _submit_unless_closed(queue_actor, PullRequestDirty(number=number))
        if queue_actors:
            self.schedule_comments(repo, number)

    async def _on_branch(self, repo: Repo, branch: str) -> None:
        for queue_actor in await self.registry.load_by_repo(repo):
            if queue_actor.key.branch == branch:
                await _submit_unless_closed(queue_actor, TargetBranchDirty())

    async def _on_head(self, repo: Repo, sha: Sha, check: str | None) -> None:
        """Reads pull requests with this head that are not mergeable: a required check of it can be all that is missing.
        Only in queues that are loaded here: the replica that holds the lease gets a hint about the commit."""
        for queue_actor in self.registry.cached_by_repo(repo):
            queue = queue_actor.queue
            waiting = [queue.submissions[submission_id].pull_request for _, submission_id in queue.not_ready]
            for pull_request in waiting:
                if pull_request.head == sha and _depends_on_check(pull_request, check):
                    await _submit_unless_closed(queue_actor, PullRequestDirty(number=pull_request.number))


HEAD_CHECK_REASONS = (Reason.HEAD_CHECKS_FAILED, Reason.WAITING_FOR_HEAD_CHECKS)


def _depends_on_check(pull_request: PullRequest, check: str | None) -> bool:
    """Whether this check of its head, or any if its name is not known, can make it ready."""
    missing = [each for each in pull_request.unmet_requirements if each.reason in HEAD_CHECK_REASONS]
    if check is None:
        return bool(missing) or pull_request.mergeability is not Mergeability.MERGEABLE
    name = check[:MAX_REQUIREMENT_NAME_CHARS].casefold()
    # A requirement without names, or with very many, does not name all checks.
    return any(
        len(each.names) in (0, MAX_REQUIREMENT_NAMES) or name in map(str.casefold, each.names) for each in missing
    )


async def _submit_unless_closed(queue_actor: QueueActor, event: Event) -> None:
    if not queue_actor.is_closed:
        await queue_actor.submit(event)
