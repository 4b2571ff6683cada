"""Which entries of the journal somebody asks for, as they typed it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from msgspec import Struct

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import DAY, Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.store import AuditPage
from mergeyard.service.errors import Code, Refused
from mergeyard.service.site import Sites
from mergeyard.web.administration.audit_words import KINDS
from mergeyard.web.administration.naming import topic_typed

LARGEST = 2**63 - 1


class Filter(Struct, frozen=True):
    """Its members are the names in the address."""

    queue: str = ""
    number: str = ""
    actor: str = ""
    kind: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def in_address(cls, asked: Mapping[str, str]) -> "Filter":
        return cls(*(asked.get(member, "").strip() for member in cls.__struct_fields__))

    def understood(self, sites: Sites, take: int, before: str = "") -> AuditPage:
        topic = topic_typed(self.queue) if self.queue else None
        return AuditPage(
            take=take,
            before=_whole(before, "Follow the links from page to page") if before else None,
            repos=None if topic is None else (_as_called(topic.repo, sites),),
            branch=None if topic is None else topic.branch,
            number=PrNumber(_whole(self.number, "Write the number of a pull request, such as 12"))
            if self.number
            else None,
            actor=self.actor or None,
            kind=_kind(self.kind) if self.kind else None,
            since=_midnight(self.since) if self.since else None,
            until=Instant(_midnight(self.until) + DAY) if self.until else None,
        )

    def address(self, **more: str) -> str:
        """What stands behind the question mark."""
        given = {member: getattr(self, member) for member in self.__struct_fields__} | more
        return urlencode({name: value for name, value in given.items() if value})

    def __bool__(self) -> bool:
        return self != Filter()


def _as_called(named: Repo, sites: Sites) -> Repo:
    """The journal also knows of hosts that are configured no more."""
    return sites.repo(named) if named.host in sites.hosts else named


def _whole(text: str, advice: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if not 0 < number <= LARGEST:
        raise Refused(Code.INVALID_REQUEST, f"“{text[:100]}” is no such number. {advice}.")
    return number


def _kind(text: str) -> str:
    if text not in KINDS:
        raise Refused(Code.INVALID_REQUEST, "Nothing of this kind is in the journal. Choose one from the list.")
    return text


def _midnight(text: str) -> Instant:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise Refused(Code.INVALID_REQUEST, f"“{text[:100]}” is no day. Write it as 2026-11-15.") from None
    return Instant(int(day.timestamp()) * 1000)
