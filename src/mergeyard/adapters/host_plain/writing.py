"""Writes refs by compare-and-swap: all of them or none, each only from where it was when we looked."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from mergeyard.adapters.host_plain.meta import Meta, written
from mergeyard.adapters.host_plain.process import GitFailed, git
from mergeyard.adapters.host_plain.pulls import StoredPull
from mergeyard.adapters.host_plain.refs import head_ref, meta_ref
from mergeyard.domain.ids import PrNumber, Sha

TRIES = 50
"""At each, somebody gets through: more than enough for as many as ever write to one pull request at once."""
Outcome = TypeVar("Outcome")


class NotMoved(GitFailed):
    """The refs were not where we thought, or somebody else holds them: look again."""


async def until_moved(attempt: Callable[[], Awaitable[Outcome]]) -> Outcome:
    for _ in range(TRIES - 1):
        with suppress(NotMoved):
            return await attempt()
    return await attempt()


async def create(folder: Path, number: PrNumber, head: Sha, meta: Meta) -> None:
    blob = await stored(folder, written(meta))
    await move(folder, f"create {head_ref(number)} {head}", f"create {meta_ref(number)} {blob}")


async def rewrite(folder: Path, pull: StoredPull, head: Sha, meta: Meta) -> None:
    blob = await stored(folder, written(meta, upon=pull.raw))
    await move(
        folder,
        f"update {head_ref(pull.number)} {head} {pull.head}",
        f"update {meta_ref(pull.number)} {blob} {pull.blob}",
    )


async def rewrite_meta(folder: Path, pull: StoredPull, meta: Meta) -> None:
    blob = await stored(folder, written(meta, upon=pull.raw))
    await move(
        folder,
        f"verify {head_ref(pull.number)} {pull.head}",
        f"update {meta_ref(pull.number)} {blob} {pull.blob}",
    )


async def stored(folder: Path, content: bytes) -> Sha:
    return Sha((await git(folder, "hash-object", "-w", "--stdin", given=content)).decode().strip())


async def move(folder: Path, *instructions: str) -> None:
    given = "".join(f"{instruction}\n" for instruction in instructions)
    try:
        await git(folder, "update-ref", "--no-deref", "--stdin", given=given.encode())
    except GitFailed as failure:
        raise NotMoved(str(failure)) from failure
