"""Opens a pull request under the next number that is free."""

from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.branches import Refusal, require_name, subject_and_author, tip_of
from mergeyard.adapters.host_plain.meta import Meta
from mergeyard.adapters.host_plain.refs import GREATEST, number_of, refs_below
from mergeyard.adapters.host_plain.writing import create, until_moved
from mergeyard.domain.ids import PrNumber


class Opening(Struct, frozen=True, kw_only=True):
    """What is asked for. Without title or author, the head commit tells them."""

    head: str
    base: str
    title: str | None = None
    author: str | None = None
    draft: bool = False


async def open_pull(folder: Path, asked: Opening) -> PrNumber:
    await require_name(folder, asked.base)
    head = await tip_of(folder, asked.head)
    subject, name = await subject_and_author(folder, head)
    meta = Meta(
        title=subject if asked.title is None else asked.title,
        author=name if asked.author is None else asked.author,
        base=asked.base,
        branch=asked.head,
        draft=asked.draft,
    )

    async def take_the_next_number() -> PrNumber:
        number = await next_number(folder)
        await create(folder, number, head, meta)
        return number

    return await until_moved(take_the_next_number)


async def next_number(folder: Path) -> PrNumber:
    numbers = map(number_of, await refs_below(folder, "refs/pull"))
    number = 1 + max((number for number in numbers if number), default=0)
    if number > GREATEST:
        raise Refusal(f"There is no number left after {GREATEST}. Delete the refs of that pull request.")
    return PrNumber(number)
