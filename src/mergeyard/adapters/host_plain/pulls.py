"""Reads a pull request out of its two refs, as they are now."""

from msgspec import Struct

from mergeyard.adapters.host_plain.meta import LARGEST, BadMeta, Meta, PullState, parsed
from mergeyard.adapters.host_plain.objects import Found, ObjectReader
from mergeyard.adapters.host_plain.refs import head_ref, meta_ref
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.ports.host import Unreadable


class StoredPull(Struct, frozen=True, kw_only=True):
    number: PrNumber
    head: Sha
    blob: Sha
    """The object that holds the data."""
    raw: bytes
    meta: Meta


async def stored_pull(reader: ObjectReader, number: PrNumber) -> StoredPull | None:
    """None when one of the two refs is missing, or the object that it names."""
    head, blob = await reader.look(head_ref(number), meta_ref(number))
    if head is None or blob is None:
        return None
    expect(head, "commit", head_ref(number))
    expect(blob, "blob", meta_ref(number))
    if blob.size > LARGEST:
        raise Unreadable(f"{meta_ref(number)} is {blob.size} bytes, and {LARGEST} is the most")
    raw = await reader.read(blob.sha)
    if raw is None:
        raise Unreadable(f"{meta_ref(number)} cannot be read")
    try:
        return StoredPull(number=number, head=head.sha, blob=blob.sha, raw=raw, meta=parsed(raw))
    except BadMeta as bad:
        raise Unreadable(f"{meta_ref(number)} is not the data of a pull request: {bad}") from bad


def expect(found: Found, kind: str, ref: str) -> None:
    if found.kind != kind:
        raise Unreadable(f"{ref} is a {found.kind}, not a {kind}")


def as_shown(pull: StoredPull) -> PullRequest:
    meta = pull.meta
    return PullRequest(
        number=pull.number,
        head=pull.head,
        base=meta.base,
        branch=meta.branch,
        title=meta.title,
        author=meta.author,
        is_open=meta.state is PullState.OPEN,
        draft=meta.draft,
        merged_into=meta.base if meta.state is PullState.MERGED else None,
    )
