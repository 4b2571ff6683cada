"""What the hosts of all forges have in common: names, URLs, refs, comments and the webhook secret.

Each forge has a class that inherits from `ForgeHost` and from a class per topic (`Checks`, `Merging`, …). Together they
implement the ports `Host` and `Forge`.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha1
from itertools import islice
from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges import webhooks
from mergeyard.adapters.forges.http import (
    MISSING_STATUSES,
    ForgeClient,
    ForgeConfig,
    format_timestamp,
    quote_segment,
    to_instant,
)
from mergeyard.adapters.forges.rate_limits import RateLimits
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import MAX_REQUIREMENT_NAMES, PullRequest, Requirement
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState, Reason
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    MAX_REQUIREMENT_NAME_CHARS,
    Comment,
    Finding,
    ForgeNotice,
    HostRefused,
    HostUnavailable,
    InvalidSignature,
    QueueSetup,
    RequestBudget,
    Thread,
)
from mergeyard.ports.git import Remote

MAX_NUMBER = 2**31 - 1


class Account(Struct, frozen=True):
    """GitLab calls it `username`, the others `login`."""

    login: str = ""
    username: str = ""


class User(Struct, frozen=True):
    login: str


class IssueComment(Struct, frozen=True):
    """As GitHub and Gitea report it. `user` is None for a deleted account."""

    id: int
    created_at: datetime
    updated_at: datetime | None = None
    body: str = ""
    user: User | None = None


class CreatedComment(Struct, frozen=True):
    id: int


class PolledPullRequest(Struct, frozen=True):
    """A pull request in a list of the latest ones."""

    number: int
    head: str | None
    metadata: Any
    """Everything that can be encoded as JSON and changes when the pull request changes."""


NUMBERED_REF_PATTERN = re.compile(r"/([1-9][0-9]{0,9})/(?:head|meta)", re.ASCII)


class ForgeHost(ABC):
    forge_name: str
    """As users write it: `GitHub`."""
    refs_prefix = "refs/pull"
    number_prefix = "#"
    page_path: str
    """The part of a pull request's URL between the repository and the number."""
    edit_method = "PATCH"
    """The HTTP method that changes a comment."""
    comments_query: ClassVar[Mapping[str, int]] = {}
    reactions_path, reaction_member = "reactions", "content"
    success_reaction, failure_reaction = "rocket", "confused"
    has_groups = False
    reports_mergeability = True
    moves_heads_first = False

    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        self.name = config.name
        self.checks_from = config.checks_from
        self.poll_interval_ms = config.poll_interval_ms
        self.head_ref_pattern = f"{self.refs_prefix}/*/head"
        self.forge = self
        self._config = config
        self._clock = clock
        limits = RateLimits(config.name, clock, config.write_pace)
        self._client = ForgeClient(config.api_url, self._credentials, limits, config.ca_file)
        self._login = ""

    # Credentials

    @abstractmethod
    async def _credentials(self) -> Mapping[str, str]:
        """The authorization headers of a request that is not limited to one repository."""

    @abstractmethod
    async def _git_credentials(self, repo: Repo) -> tuple[str, str]:
        """User and password for git over HTTP."""

    def _find_key_problem(self) -> str:
        """Why the commits of the queue have no valid signature; empty: they have one, perhaps of an unknown key."""
        signer = self._config.signer
        if signer is None:
            return f"signing_key_file is not set for {self.name}"
        return f"{signer.fingerprint}, which has expired" if self._clock.now() >= signer.expires_at * SECOND else ""

    async def _client_for(self, repo: Repo) -> ForgeClient:
        return self._client.for_repository(repo, self._api_path(repo))

    async def _read_own_login(self) -> str:
        """The author of our comments. Cached indefinitely: a token belongs to one account."""
        if not self._login:
            account = await self._client.get("/user", Account) or Account()
            self._login = account.login or account.username
        if not self._login:
            raise HostUnavailable(f"{self.forge_name} does not report the account of our token")
        return self._login

    async def close(self) -> None:
        await self._client.close()

    # Names and addresses

    def canonical_repo(self, repo: Repo) -> Repo:
        return replace(repo, owner=repo.owner.lower(), name=repo.name.lower())

    @abstractmethod
    def _is_valid_full_name(self, name: str) -> bool:
        """Whether `owner/name` can be a repository of this forge."""

    def _is_valid_name(self, repo: Repo) -> bool:
        return self._is_valid_full_name(f"{repo.owner}/{repo.name}")

    def _full_name(self, repo: Repo) -> str:
        """`owner/name`, as in web and git URLs."""
        if not self._is_valid_name(repo):
            raise HostUnavailable(f"{repo} is not a valid repository name on {self.forge_name}: check the spelling")
        return f"{repo.owner}/{repo.name}"

    def _api_path(self, repo: Repo) -> str:
        return f"/repos/{self._full_name(repo)}"

    async def remote(self, repo: Repo) -> Remote:
        """The same certificates apply as for the API."""
        url, ca_file = f"{self._config.web_url}/{self._full_name(repo)}.git", self._config.ca_file
        basic = b64encode(":".join(await self._git_credentials(repo)).encode()).decode()
        environment = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
        }
        return Remote(url, environment if ca_file is None else environment | {"GIT_SSL_CAINFO": str(ca_file)})

    def pull_request_url(self, repo: Repo, number: PullRequestNumber) -> str | None:
        return f"{self._config.web_url}/{repo.owner}/{repo.name}/{self.page_path}/{number}"

    async def has_repository(self, repo: Repo) -> bool:
        return self._is_valid_name(repo) and await (await self._client_for(repo)).get("", dict[str, Any]) is not None

    # Refs

    def head_ref(self, number: PullRequestNumber) -> str:
        return f"{self.refs_prefix}/{number}/head"

    def pull_request_number_of(self, ref: str) -> PullRequestNumber | None:
        match = NUMBERED_REF_PATTERN.fullmatch(ref.removeprefix(self.refs_prefix))
        return PullRequestNumber(int(match[1])) if match and int(match[1]) <= MAX_NUMBER else None

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        """The branches, and two refs per pull request: its head, and `meta`, which is not a git ref but a digest that
        changes with the metadata."""
        client, names = await self._client_for(repo), sorted(branches)
        tips = await asyncio.gather(*(self._read_branch_tip(client, name) for name in names))
        found = {f"refs/heads/{name}": Sha(tip) for name, tip in zip(names, tips, strict=True) if tip}
        for polled in await self._list_latest(client, repo):
            if polled.head is not None:
                found[self.head_ref(PullRequestNumber(polled.number))] = Sha(polled.head)
            digest = sha1(msgspec.json.encode(polled.metadata), usedforsecurity=False).hexdigest()
            found[f"{self.refs_prefix}/{polled.number}/meta"] = Sha(digest)
        return found

    async def branch_tip(self, repo: Repo, branch: str) -> Sha | None:
        tip = await self._read_branch_tip(await self._client_for(repo), branch)
        return Sha(tip) if tip else None

    @abstractmethod
    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None: ...

    @abstractmethod
    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:
        """The pull requests that changed last, without those that show a test branch."""

    async def find_changed(self, repos: Mapping[Repo, Collection[PullRequestNumber]]) -> Collection[Repo]:
        return repos

    @abstractmethod
    async def read_pull_request(
        self, repo: Repo, number: PullRequestNumber, *, with_requirements: bool = True, with_head_branch: bool = True
    ) -> PullRequest | None: ...

    async def mark_merged(self, repo: Repo, number: PullRequestNumber, head: Sha, commit: Sha) -> bool:  # noqa: ARG002
        """Only reads it: the forge itself detects that the head is part of the target branch. A pull request that is
        gone needs no mark."""
        pull_request = await self.read_pull_request(repo, number, with_requirements=False)
        return pull_request is None or pull_request.merged_into is not None

    # Comments and labels

    @abstractmethod
    async def _read_labels(self, client: ForgeClient, number: PullRequestNumber) -> Iterable[str] | None:
        """None if there is no such pull request."""

    def _comments_path(self, number: PullRequestNumber) -> str:
        return f"/issues/{number}/comments"

    def _comment_path(self, number: PullRequestNumber, comment: str) -> str:  # noqa: ARG002
        return f"/issues/comments/{quote_segment(comment)}"

    async def _read_comments(self, client: ForgeClient, number: PullRequestNumber, since: Instant) -> Sequence[Comment]:
        """Oldest first."""
        query = {"since": format_timestamp(since), **self.comments_query}
        path = self._comments_path(number)
        comments = await client.get_all(path, list[IssueComment], query, missing=MISSING_STATUSES)
        return [
            Comment(
                id=str(comment.id),
                author=comment.user.login if comment.user else "",
                text=comment.body,
                at=to_instant(comment.created_at),
                is_changed=is_changed(comment.created_at, comment.updated_at),
            )
            for comment in sorted(comments, key=lambda comment: (comment.created_at, comment.id))
        ]

    async def is_edited(self, repo: Repo, number: PullRequestNumber, comment: Comment) -> bool:  # noqa: ARG002
        return comment.is_changed

    def _escape(self, text: str) -> str:
        """Text that the forge does not execute as a command."""
        return text

    async def thread(self, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
        client = await self._client_for(repo)
        labels = await self._read_labels(client, number)
        if labels is None:
            raise HostRefused(f"{repo}{self.number_prefix}{number} is gone")
        return Thread(frozenset(labels), tuple(await self._read_comments(client, number, since)))

    async def put_comment(self, repo: Repo, number: PullRequestNumber, text: str, comment: str | None) -> str:
        """Without a comment that still exists, looks for ours with the same first line: the response that contained its
        id may have been lost."""
        client, body = await self._client_for(repo), {"body": self._escape(text)}
        if comment is not None and await self._edit_comment(client, number, comment, body):
            return comment
        existing = await self._find_own_comment(client, number, text)
        if existing is not None and await self._edit_comment(client, number, existing, body):
            return existing
        reply = await client.send("POST", self._comments_path(number), body)
        return str(reply.raise_for_status().decode(CreatedComment).id)

    async def _edit_comment(
        self, client: ForgeClient, number: PullRequestNumber, comment: str, body: Mapping[str, str]
    ) -> bool:
        """False if the comment is gone."""
        reply = await client.send(self.edit_method, self._comment_path(number, comment), body)
        return reply.raise_for_status(allowed=MISSING_STATUSES).is_success

    async def _find_own_comment(self, client: ForgeClient, number: PullRequestNumber, text: str) -> str | None:
        login, marker = await self._read_own_login(), _first_line(text)
        for comment in await self._read_comments(client, number, Instant(0)):
            if comment.author == login and _first_line(comment.text) == marker:
                return comment.id
        return None

    async def react(self, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:
        """GitLab answers 404 also if the reaction exists."""
        path = f"{self._comment_path(number, comment)}/{self.reactions_path}"
        body = {self.reaction_member: self.success_reaction if success else self.failure_reaction}
        reply = await (await self._client_for(repo)).send("POST", path, body)
        reply.raise_for_status(allowed=MISSING_STATUSES)

    # Webhooks and diagnostics

    def list_budgets(self) -> Sequence[RequestBudget]:
        return self._client.list_budgets("token")

    def parse_webhook(self, headers: Mapping[str, str], body: bytes) -> Sequence[ForgeNotice]:
        if not self._config.webhook_secret:
            raise InvalidSignature("no secret is configured for the webhooks of this Git host: set webhook_secret_file")
        notice = self._verify_and_parse(self._config.webhook_secret, headers, body)
        return (notice,) if notice is not None and self._is_valid_name(notice.repo) else ()

    def _verify_and_parse(self, secret: str, headers: Mapping[str, str], body: bytes) -> ForgeNotice | None:
        webhooks.verify_hmac(secret, headers, body)
        return webhooks.parse_github_notice(self.name, headers, body)

    def _check_webhook_secret(self) -> Finding:
        if self._config.webhook_secret:
            return ok("The webhook secret is set.")
        return problem(
            "`webhook_secret_file` is not set, so all webhooks are rejected and changes are found only by polling: set "
            f"`webhook_secret_file`, and the same long random text in the webhook on {self.forge_name}."
        )

    async def branch_warnings(self, repo: Repo, queue: QueueSetup) -> Sequence[str]:  # noqa: ARG002
        return ()

    def _require_permission(self, *permissions: str) -> Requirement:
        """A rule that our account cannot read: `permissions` are what an administrator has to grant."""
        unreadable = build_requirement(Reason.HOST_RULE_UNREADABLE, permissions, given=None)
        return replace(unreadable, blocks_if_unknown=self._config.unreadable_rules_block)


def build_requirement(
    reason: Reason,
    names: Iterable[str] = (),
    *,
    needed: int = 1,
    given: int | None = 0,
    given_by: Iterable[str] = (),
) -> Requirement:
    return Requirement(
        reason=reason, needed=needed, given=given, names=_bound_names(names), given_by=_bound_names(given_by)
    )


def judge_head_checks(required: Sequence[str], states: Mapping[str, CheckState]) -> Iterator[Requirement]:
    """A check that failed needs a person; one that runs, or has not reported, needs time."""
    failed = [name for name in required if states.get(name) is CheckState.FAILED]
    passed = [name for name in required if states.get(name) in SATISFIED_CHECK_STATES]
    if failed:
        yield build_requirement(Reason.HEAD_CHECKS_FAILED, failed, needed=len(failed))
    rest = [name for name in required if name not in failed]
    if rest:
        waiting = [name for name in rest if name not in passed]
        yield build_requirement(Reason.WAITING_FOR_HEAD_CHECKS, waiting, needed=len(rest), given=len(passed))


def _bound_names(names: Iterable[str]) -> tuple[str, ...]:
    """They come from the forge."""
    return tuple(
        name[:MAX_REQUIREMENT_NAME_CHARS] for name in islice(dict.fromkeys(filter(None, names)), MAX_REQUIREMENT_NAMES)
    )


def is_changed(created_at: datetime, updated_at: datetime | None) -> bool:
    """Both times are of the same clock, that of the forge."""
    return updated_at is not None and updated_at != created_at


def ok(message: str) -> Finding:
    return Finding(True, message)


def advise(message: str) -> Finding:
    return Finding(True, message, advice=True)


def problem(message: str) -> Finding:
    return Finding(False, message)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()
