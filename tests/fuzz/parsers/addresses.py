"""Addresses of webhooks: each leads to a public place, is refused with words, or cannot be resolved now."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from hypothesis import strategies as st

from mergeyard.adapters.tell_webhooks.guarding import Guard
from mergeyard.adapters.tell_webhooks.public_addresses import is_public
from mergeyard.client.naming import RepoName
from mergeyard.domain.webhooks import WebhookKind
from mergeyard.ports.sending import AddressRefused, NotSent
from mergeyard.service.errors import Refused
from mergeyard.service.names import is_owner, is_part_of_a_repository, is_target_branch
from mergeyard.service.telling.webhooks import shown
from mergeyard.web.addresses import outside, queue_named, repo_named
from mergeyard.web.administration.naming import topic_typed
from tests.fuzz.bending import words
from tests.fuzz.effort import outcome
from tests.fuzz.laws import holds_for

pieces = st.sampled_from(
    [
        "https", "http", "HTTPS", "://", ":", "//", "/", "\\", "@", "?", "#", "[", "]", "::1", "::ffff:10.0.0.1", "%2e",
        "%00", "127.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.1", "localhost", "ci.example", "xn--", "é",
        "xn--a", "ﬀ", "℀", "\uff0e", "。", "①", "ß", "\u200d", "\xad", ".", "..", "-", "_", "*", "a" * 70, ":0", "=",
        ":443", ":99999", ":-1", ":٣", "&", ";",
    ]
)  # fmt: skip
urls = st.lists(pieces | words, min_size=1, max_size=8).map("".join) | st.lists(pieces, max_size=6).map(
    lambda parts: "https://" + "".join(parts)
)
addresses = st.ip_addresses().map(str) | words


async def nobody(_: str, __: int) -> Sequence[str]:
    raise NotSent("The name is not known.")


@holds_for(urls, st.lists(addresses, min_size=1, max_size=3), st.booleans())
def an_address_leads_to_public_places_or_is_refused(url: str, behind: list[str], known: bool) -> None:
    async def resolve(_: str, __: int) -> Sequence[str]:
        return behind

    guard = Guard(resolve if known else nobody, allow_private=False)
    there = outcome(lambda: asyncio.run(guard.admit(url)), AddressRefused, NotSent)
    if isinstance(there, Exception):
        assert str(there)
        return
    assert all(map(is_public, there.addresses))
    assert there.url.scheme == "https"
    assert there.name.isascii()
    for kind in WebhookKind:
        assert shown(kind, url).startswith("https://")
    assert "@" not in urlsplit(shown(WebhookKind.WEBHOOK, url)).netloc


@holds_for(words | urls)
def a_link_to_elsewhere_is_a_web_address(url: str) -> None:
    assert outside(url) is None or url.lower().startswith(("http://", "https://"))


typed = st.lists(
    st.sampled_from(["git.local", "/", ":", "acme", "app", "main", "..", "git.local:80"]) | words, max_size=8
)


@holds_for(typed.map("".join))
def a_name_that_was_typed_is_understood_or_refused(text: str) -> None:
    for read in (repo_named, queue_named, topic_typed):
        assert outcome(lambda read=read: read(text), Refused)
    named = outcome(lambda: RepoName.parse(text), ValueError)
    assert isinstance(named, ValueError) or str(named).lower() == text.lower()


@holds_for(words)
def no_good_name_leads_out_of_its_place(name: str) -> None:
    for is_good in (is_part_of_a_repository, is_owner, is_target_branch):
        if is_good(name):
            assert name.encode()
            assert not name.startswith(("-", "/"))
            assert not any(part in (".", "..") for part in name.split("/"))
            assert "\0" not in name
