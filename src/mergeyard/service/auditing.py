"""Reads the whole journal, newest first: who did what, when, to which queue or to the installation itself."""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.journal import Kept
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import AuditedEntry, AuditPage, Store

AT_A_TIME = 500
decode_kept = msgspec.json.Decoder[Kept](Kept).decode


class Audited(Struct, frozen=True):
    seq: int
    key: QueueKey | None
    """Of a queue that may be deleted by now; None for what was done to the installation."""
    token: str | None
    """The id of the token that it was done with, if it was one."""
    record: Kept


class Auditing:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, reader: Token, page: AuditPage) -> tuple[list[Audited], int | None]:
        """And where the next page begins, if there is one."""
        found = await self._store.audit(replace(_seen_by(reader, page), take=page.take + 1))
        shown = [_audited(entry) for entry in found[: page.take]]
        return shown, shown[-1].seq if len(found) > page.take else None

    async def all(self, reader: Token, page: AuditPage) -> AsyncIterator[list[Audited]]:
        """However many there are, a few at a time."""
        before = page.before
        while True:
            found, before = await self.page(reader, replace(page, take=AT_A_TIME, before=before))
            yield found
            if before is None:
                return


def _seen_by(reader: Token, page: AuditPage) -> AuditPage:
    """Whoever is limited to some repositories reads of nothing else."""
    if not reader.repos:
        return page
    asked = reader.repos if page.repos is None else reader.repos.intersection(page.repos)
    return replace(page, repos=tuple(sorted(asked, key=str)))


def _audited(entry: AuditedEntry) -> Audited:
    return Audited(entry.seq, entry.key, entry.token, decode_kept(entry.body))
