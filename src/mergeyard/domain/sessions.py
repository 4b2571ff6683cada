"""A session: somebody who signed in to the pages, until when, and what they may do whom somebody else vouches for."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.tokens import Scope


class Session(Struct, frozen=True, kw_only=True):
    digest: bytes
    """The SHA-256 of what the browser keeps, which itself is stored nowhere."""
    token: str | None
    """The id of the token that was signed in with: what that one may no longer do, the session may not either."""
    name: str = ""
    """Who it is, where somebody else vouched for them."""
    subject: str = ""
    """Their issuer and `sub` there, which no rename changes."""
    groups: frozenset[str] = frozenset()
    """And which groups they were in then, of those that anything is granted to."""
    created_at: Instant
    expires_at: Instant

    def valid(self, now: Instant) -> bool:
        return now < self.expires_at


class Grants(Struct, frozen=True, kw_only=True):
    """What is granted to those for whom somebody else vouches: nothing, unless it is said."""

    to_groups: Mapping[str, frozenset[Scope]] = {}
    to_everybody: frozenset[Scope] = frozenset()

    def of(self, groups: frozenset[str]) -> frozenset[Scope]:
        """Whoever may do anything may also see it."""
        granted = self.to_everybody.union(*(self.to_groups.get(group, frozenset()) for group in groups))
        return granted | {Scope.READ} if granted else granted


NOTHING_GRANTED = Grants()
