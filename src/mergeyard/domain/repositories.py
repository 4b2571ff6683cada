"""Which repository is meant, and which branch of it: together they name a queue."""

from msgspec import Struct


class Repo(Struct, frozen=True):
    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.host}/{self.owner}/{self.name}"


class QueueKey(Struct, frozen=True):
    repo: Repo
    branch: str

    def __str__(self) -> str:
        return f"{self.branch} of {self.repo}"
