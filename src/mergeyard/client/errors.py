"""What can go wrong: the server refuses, or nobody answers who understands us."""

from msgspec import Struct


class Flaw(Struct, frozen=True):
    """A place in the request that does not fit."""

    pointer: str
    message: str


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of every refusal."""

    code: str
    title: str
    status: int
    detail: str
    request_id: str
    retryable: bool
    errors: tuple[Flaw, ...] = ()


class MergeyardError(Exception):
    """The server refused, and changed nothing. Build on `code`; the rest is for people."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.detail} ({problem.code}, request {problem.request_id})")
        self.code = problem.code
        self.title = problem.title
        self.detail = problem.detail
        self.status = problem.status
        self.request_id = problem.request_id
        self.retryable = problem.retryable
        self.errors = problem.errors


class Unreachable(Exception):
    """Nobody answered, or somebody who is no Mergeyard; it was tried until patience ended."""
