"""Changes a pull request that is open, and closes it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.host_plain.branches import Refusal, require_name, tip_of
from mergeyard.adapters.host_plain.meta import Meta, PullState
from mergeyard.adapters.host_plain.objects import ObjectReader
from mergeyard.adapters.host_plain.pulls import StoredPull, stored_pull
from mergeyard.adapters.host_plain.writing import rewrite, rewrite_meta, until_moved
from mergeyard.domain.ids import PrNumber


class Change(Struct, frozen=True, kw_only=True):
    """What is asked for. None: as it was."""

    head: str | None = None
    base: str | None = None
    title: str | None = None
    draft: bool | None = None


async def update_pull(folder: Path, number: PrNumber, change: Change) -> None:
    """Also shows what was pushed to its branch since."""
    if change.base is not None:
        await require_name(folder, change.base)

    async def update(pull: StoredPull) -> None:
        match pull.meta.state:
            case PullState.OPEN:
                meta = changed(pull.meta, change)
                await rewrite(folder, pull, await tip_of(folder, meta.branch), meta)
            case PullState.CLOSED | PullState.MERGED as state:
                raise Refusal(f"Pull request {number} is {state}. Open another with: mergeyard pr open")
            case _:
                assert_never(pull.meta.state)

    await upon_present(folder, number, update)


async def close_pull(folder: Path, number: PrNumber) -> None:
    async def close(pull: StoredPull) -> None:
        match pull.meta.state:
            case PullState.OPEN:
                await rewrite_meta(folder, pull, replace(pull.meta, state=PullState.CLOSED))
            case PullState.CLOSED:
                return
            case PullState.MERGED:
                raise Refusal(f"Pull request {number} is merged, so there is nothing left to close.")
            case _:
                assert_never(pull.meta.state)

    await upon_present(folder, number, close)


def changed(meta: Meta, change: Change) -> Meta:
    return replace(
        meta,
        branch=meta.branch if change.head is None else change.head,
        base=meta.base if change.base is None else change.base,
        title=meta.title if change.title is None else change.title,
        draft=meta.draft if change.draft is None else change.draft,
    )


async def upon_present(folder: Path, number: PrNumber, act: Callable[[StoredPull], Awaitable[None]]) -> None:
    """Acts upon the pull request as it is, and again when it turns out to be another meanwhile."""
    reader = await ObjectReader.of(folder)

    async def look_and_act() -> None:
        pull = await stored_pull(reader, number)
        if pull is None:
            raise Refusal(f"There is no pull request {number}. See them with: mergeyard pr list")
        await act(pull)

    try:
        await until_moved(look_and_act)
    finally:
        await reader.close()
