"""The names of repositories and queues, as people write them and as the API takes them."""

from typing import Any, Self

from msgspec import Struct


class RepoName(Struct, frozen=True):
    host: str
    owner: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """`host/owner/name`; where groups stand within groups, the owner has slashes, too."""
        host, _, rest = text.partition("/")
        owner, _, name = rest.rpartition("/")
        if not (host and owner and name):
            raise ValueError(f"{text} names no repository: write host/owner/name.")
        return cls(host.lower(), owner, name)

    def __str__(self) -> str:
        return f"{self.host}/{self.owner}/{self.name}"


class QueueName(Struct, frozen=True):
    """A queue is named by its repository and its target branch."""

    repo: RepoName
    branch: str

    @classmethod
    def of(cls, repo: str, branch: str) -> Self:
        """`QueueName.of("github.com/acme/app", "main")`."""
        return cls(RepoName.parse(repo), branch)

    @property
    def members(self) -> dict[str, Any]:
        """As a request names it."""
        return {"repo": self.repo, "targetBranch": self.branch}

    def __str__(self) -> str:
        return f"{self.branch} of {self.repo}"
