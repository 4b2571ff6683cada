"""Which repository is meant, and which branch of it: together they name a queue."""

from msgspec import Struct


class Repo(Struct, frozen=True):
    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.host}/{self.owner}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Repo | None":
        """`host/owner/name`, where the owner may be groups within groups; None: this names no repository."""
        host, _, path = text.partition("/")
        owner, _, name = path.rpartition("/")
        return cls(host.lower(), owner, name) if host and owner and name else None


class QueueKey(Struct, frozen=True):
    repo: Repo
    branch: str

    def __str__(self) -> str:
        return f"{self.branch} of {self.repo}"
