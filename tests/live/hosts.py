"""What the kit does at a Git host, whatever its kind: the interface, the accounts, and git."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.live.client import Budget, Client, Git, GitResult, NotRun, Reply, RequestRefused
from tests.support.repositories import Files, Origin, full_ref

ADMIN, SECOND, BOT = "admin", "second", "bot"
"""The account that owns the repository; another person; and the account that Mergeyard uses."""
CHECK = "unit"
LABEL = "merge-queue"
MARKER = "mergeyard-live-kit"
"""A branch. The kit uses a repository that it did not create only if it is empty or has this branch."""


class Limiter(Protocol):
    """Makes a fake refuse the requests of Mergeyard, as a Git host does beyond its limit."""

    def start(self, seconds: float) -> None: ...

    def count_late(self) -> int | None:
        """How many requests came while the first refusal still asked to wait; None if no request was refused."""
        ...


class Access(Struct, frozen=True, kw_only=True):
    """Where the Git host is, and who asks. Secrets are never shown."""

    web_url: str
    api_url: str
    owner: str
    token: str
    second_token: str = ""
    app_id: str = ""
    app_key: str = ""
    is_private: bool = True
    is_premium: bool = False
    """GitLab Premium, which has approval rules."""
    is_free: bool = False
    """GitHub Free with a private repository, which then has no rules and no drafts."""
    ca_file: Path | None = None
    limiter: Limiter | None = None
    """Only of a fake."""

    @property
    def host_name(self) -> str:
        return urlsplit(self.web_url).netloc.rpartition("@")[2]

    @property
    def secrets(self) -> list[str]:
        return [secret for secret in (self.token, self.second_token, self.app_key) if secret]

    def __repr__(self) -> str:
        return f"Access({self.web_url!r})"


class LiveHost(ABC):
    """One repository at a Git host. Each method is one action of a person or of CI."""

    kind = ""
    title = ""
    git_user = ""
    """The user name for git over HTTP, where it is fixed."""
    pull_ref = "refs/pull/{}/head"
    command = "/merge"
    members: ClassVar[dict[str, Sequence[str]]] = {}
    """By kind of answer: the members that Mergeyard depends on."""

    def __init__(self, access: Access, name: str, folder: Path, budget: Budget) -> None:
        self.access, self.name, self.budget = access, name, budget
        self.origin = Origin.create(folder / "local.git")
        """The local repository that branches are pushed from."""
        self.is_accepted = False
        """Whether the kit can use the repository, and so must clean it."""
        self.is_created = False
        """Whether the kit created the repository, and so must delete it."""
        self.is_protected = True
        """Whether the plan of the owner allows rules."""
        self.cleanup_notes: list[str] = []
        self.cleanup = ""
        """What the kit left behind."""
        self.extra_secrets: list[str] = []
        self._folder = folder
        self._clients = {ADMIN: self._client(access.token)}
        self._tokens = {ADMIN: access.token}
        if access.second_token:
            self._clients[SECOND] = self._client(access.second_token)
            self._tokens[SECOND] = access.second_token
        self.logins = dict[str, str]()
        try:
            self.logins |= {role: self._find_login(client) for role, client in self._clients.items()}
        except BaseException:
            self.close()
            raise
        self.fork_path = ""

    @property
    def owner(self) -> str:
        return self.access.owner

    @property
    def path(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def has_second(self) -> bool:
        return SECOND in self._clients

    @property
    def has_app(self) -> bool:
        return bool(self.access.app_id)

    def describe_account(self) -> str:
        return "an App" if self.has_app else "the account of --token-file, which administers the repository"

    def need_app(self) -> None:
        if not self.has_app:
            raise NotRun("needs an App: give --app-id and --app-key-file")

    def need_second(self, purpose: str) -> None:
        if not self.has_second:
            raise NotRun(f"{purpose} needs a second account: give its token with --second-token-file")

    def need_approvals(self, purpose: str) -> None:
        self.need_second(purpose)
        self.need_rules(purpose)
        if not self.can_require_approvals:
            raise NotRun(f"{purpose} needs a rule that requires approvals, which this plan does not have")

    def need_rules(self, purpose: str) -> None:
        if not self.is_protected:
            raise NotRun(f"{purpose} needs rules, and a private repository on GitHub's free plan has none (--free)")

    def send(self, method: str, path: str, body: Any = None, who: str = ADMIN, **headers: str) -> Reply:
        return self._clients[who].send(method, path, body, headers)

    @property
    def replies(self) -> list[Reply]:
        """The answers to all successful reads of this run."""
        return [reply for client in self._different_clients() for reply in client.replies]

    def close(self) -> None:
        for client in self._different_clients():
            client.close()

    def _different_clients(self) -> list[Client]:
        return list({id(one): one for one in self._clients.values()}.values())

    # git

    def git(self, verb: str, *arguments: str, who: str = ADMIN, path: str = "") -> GitResult:
        user = self.git_user or self.logins[who]
        runner = Git(self.origin.path, user, self._tokens[who], self.budget, self.access.ca_file)
        return runner.run(verb, f"{self.access.web_url}/{path or self.path}.git", *arguments)

    def push(self, place: str, who: str = ADMIN, path: str = "") -> GitResult:
        """Never overwrites a commit."""
        return self.git("push", f"{full_ref(place)}:{full_ref(place)}", who=who, path=path)

    def fetch(self, place: str) -> Sha:
        result = self.git("fetch", "--quiet", f"+{full_ref(place)}:{full_ref(place)}")
        assert result.succeeded, "; ".join(result.messages)
        return self.origin.tip(place)

    def refs(self) -> dict[str, str]:
        result = self.git("ls-remote", "--quiet")
        if not result.succeeded:
            raise RequestRefused(f"git cannot read {self.path}: {'; '.join(result.messages)}")
        lines = result.output.splitlines()
        return {ref: sha for sha, ref in (line.split("\t") for line in lines)}

    def commit(self, branch: str, files: Files, *, base: str = "main", who: str = ADMIN, path: str = "") -> Sha:
        """Pushes a branch with one commit on top of the base."""
        sha = self.origin.branch(branch, base=base, files=files)
        result = self.push(branch, who=who, path=path)
        assert result.succeeded, "; ".join(result.messages)
        return sha

    def push_to_main(self, files: Files, who: str = BOT, *, merging: str | None = None) -> GitResult:
        """Pushes a commit on top of main, without a pull request."""
        self.fetch("main")
        self.origin.set_ref("direct", self.origin.tip("main"))
        self.origin.commit("direct", files, merging=merging)
        return self.git("push", "refs/heads/direct:refs/heads/main", who=who)

    # The repository

    @abstractmethod
    def _client(self, token: str) -> Client: ...

    @abstractmethod
    def _read_login(self, client: Client) -> str: ...

    def _find_login(self, client: Client) -> str:
        try:
            return self._read_login(client)
        except (KeyError, TypeError):
            raise NotRun(
                f"{self.access.api_url} does not answer as {self.title} does: correct --url or --api-url"
            ) from None

    @abstractmethod
    def create_repository(self) -> Reply: ...

    def connect(self) -> None:
        """Called once the repository exists."""
        self._clients[BOT], self._tokens[BOT] = self._clients[ADMIN], self._tokens[ADMIN]

    @abstractmethod
    def delete_repository(self) -> Reply: ...

    @abstractmethod
    def delete_fork(self) -> Reply: ...

    @abstractmethod
    def rename(self, name: str) -> Reply: ...

    @abstractmethod
    def read_repository(self, path: str = "", who: str = ADMIN) -> Reply: ...

    def read_remaining(self) -> str:
        """How many requests are left to the account of Mergeyard; empty if the Git host does not say it."""
        headers = self.read_repository(who=BOT).must_succeed().headers
        return next((value for name, value in headers.items() if name.lower().endswith("ratelimit-remaining")), "")

    @abstractmethod
    def admit_second(self) -> None:
        """The second account can write to the repository."""

    @abstractmethod
    def protect(self, approvals: int) -> Reply:
        """`main` requires the check and this number of approvals; only the account of Mergeyard can change it."""

    @abstractmethod
    def unprotect(self) -> None: ...

    def restore_rules(self) -> None:
        """Only the rule of the first step is left, whatever a failed step wrote."""
        self.unprotect()
        if self.is_protected:
            self.protect(self.required_approvals).must_succeed()

    @abstractmethod
    def read_rules(self) -> Reply: ...

    @abstractmethod
    def add_webhook(self, url: str, secret: str) -> Reply: ...

    @property
    def can_require_approvals(self) -> bool:
        return self.has_second and self.is_protected

    @property
    def required_approvals(self) -> int:
        return 1 if self.can_require_approvals else 0

    # Pull requests

    @abstractmethod
    def open(self, branch: str, title: str, *, who: str = ADMIN, from_fork: bool = False) -> Reply: ...

    @abstractmethod
    def number_of(self, reply: Reply) -> int: ...

    @abstractmethod
    def read(self, number: int, who: str = ADMIN) -> Reply: ...

    @abstractmethod
    def is_settled(self, reply: Reply) -> bool:
        """Whether the Git host has determined the mergeability."""

    @abstractmethod
    def is_merged(self, reply: Reply) -> bool: ...

    @abstractmethod
    def list_by_branch(self, branch: str) -> Reply: ...

    @abstractmethod
    def close_all(self) -> None:
        """Closes all open pull requests."""

    @abstractmethod
    def approve(self, number: int, who: str = SECOND) -> Reply: ...

    @abstractmethod
    def request_changes(self, number: int) -> Reply:
        """The second account requests changes."""

    @abstractmethod
    def withdraw_approval(self, number: int, approval: Reply) -> Reply:
        """Of the second account: an administrator dismisses it, or the account itself withdraws it."""

    def require_conversations(self) -> None:
        """From now on, all conversations must be resolved before a merge."""
        raise NotRun(f"{self.title} has no rule about conversations")

    def start_conversation(self, number: int, path: str) -> Reply:
        """About this file, which the pull request changes."""
        raise NotImplementedError

    def resolve_conversation(self, number: int, started: Reply) -> Reply:
        raise NotImplementedError

    def require_code_owner(self, path: str) -> None:  # noqa: ARG002
        """From now on, the second account must approve changes of this file."""
        raise NotRun(f"{self.title} has no rule about code owners")

    @abstractmethod
    def list_files(self, number: int) -> Reply:
        """The changed files, as the Git host shows them."""

    @abstractmethod
    def comment(self, number: int, text: str, who: str = ADMIN) -> Reply: ...

    @abstractmethod
    def list_comments(self, number: int) -> Reply: ...

    @abstractmethod
    def list_reactions(self, number: int, comment: int) -> Reply: ...

    @abstractmethod
    def label(self, number: int) -> Reply: ...

    @abstractmethod
    def labels(self, number: int) -> list[str]: ...

    @abstractmethod
    def report(self, sha: str, state: str, *, check: str = CHECK, who: str = ADMIN) -> Reply:
        """The state is `success`, `failure` or `pending`."""

    @abstractmethod
    def list_checks(self, sha: str) -> Reply: ...

    @abstractmethod
    def check_states(self, reply: Reply) -> dict[str, str]: ...

    @abstractmethod
    def fork(self) -> Reply:
        """The second account forks the repository. The fork can need a moment."""

    def is_fork_ready(self) -> bool:
        """Whether the fork has its content."""
        return "refs/heads/main" in self.git("ls-remote", "--quiet", who=SECOND, path=self.fork_path).output

    # Mergeyard

    def queue_settings(self, poll_s: int) -> tuple[dict[str, object], dict[str, str]]:
        """The settings and secrets with which Mergeyard connects."""
        settings: dict[str, object] = {"provider": self.kind, "url": self.access.web_url, "poll_seconds": poll_s}
        settings |= {"api_url": self.access.api_url}
        settings |= {"ca_file": str(self.access.ca_file.resolve())} if self.access.ca_file else {}
        return settings, {"token": self.access.token}
