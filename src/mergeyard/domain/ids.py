"""Ids, repositories and our own names on a Git host. Ids are derived from counters of the queue, never random."""

from hashlib import sha256
from typing import NewType

from msgspec import Struct

QueueId = NewType("QueueId", str)
PullRequestNumber = NewType("PullRequestNumber", int)
BatchId = NewType("BatchId", int)
RunId = NewType("RunId", str)
Sha = NewType("Sha", str)
SHA_PATTERN = "[0-9a-f]{40}|[0-9a-f]{64}"
"""The full name of an object of git, by SHA-1 or by SHA-256. In a longer pattern it needs a group of its own."""
SHA256_DIGITS = 64

SubmissionId = NewType("SubmissionId", int)
"""One submission of a pull request, counted per queue: a smaller id was submitted earlier."""


def derive_run_id(queue: QueueId, count: int) -> RunId:
    """The same for the `count`-th run of a queue, also when a decision is repeated after a crash."""
    return RunId(_uuid(f"{queue}/{count}"))


def derive_submission_uuid(queue: QueueId, submission_id: SubmissionId) -> str:
    """The public id of a submission in the API."""
    return _uuid(f"{queue}/stay/{submission_id}")


def _uuid(name: str) -> str:
    """UUID version 8 (custom), derived from a SHA-256."""
    digest = sha256(name.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


class ObjectFormat(Struct, frozen=True):
    """How a repository names its objects."""

    name: str
    """As git calls it, which is also the name of the hash."""
    signature_header: bytes
    """Of a signed commit."""


SHA1 = ObjectFormat("sha1", b"gpgsig")
SHA256 = ObjectFormat("sha256", b"gpgsig-sha256")


def object_format_of(sha: str) -> ObjectFormat:
    return SHA256 if len(sha) == SHA256_DIGITS else SHA1


class Repo(Struct, frozen=True):
    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.host}/{self.owner}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Repo | None":
        """Parses `host/owner/name`, where the owner can be nested groups; None if the text names no repository."""
        host, _, path = text.partition("/")
        owner, _, name = path.rpartition("/")
        return cls(host.lower(), owner, name) if host and owner and name else None


class QueueKey(Struct, frozen=True):
    repo: Repo
    branch: str

    def __str__(self) -> str:
        return f"{self.branch} of {self.repo}"


STATUS_CONTEXT = "mergeyard"
TEST_BRANCH_PREFIX = f"{STATUS_CONTEXT}/"
