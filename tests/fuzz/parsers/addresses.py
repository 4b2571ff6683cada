"""Webhook addresses: each resolves to public addresses, is refused with a message, or cannot be resolved."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from hypothesis import strategies as st

from mergeyard.adapters.webhooks.ssrf_guard import SsrfGuard, is_public
from mergeyard.client.transport import RepoName
from mergeyard.domain.webhooks import WebhookKind
from mergeyard.ports.external import AddressRefused, SendFailed
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import is_owner, is_repository_name, is_target_branch
from mergeyard.service.webhooks.webhooks import redact_url
from mergeyard.web.admin.fields import parse_topic
from mergeyard.web.formats import parse_queue_name, parse_repo, safe_external_url
from tests.fuzz.mutations import words
from tests.fuzz.properties import holds_for, outcome

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


async def resolve_nothing(_: str, __: int) -> Sequence[str]:
    raise SendFailed("The name is not known.")


@holds_for(urls, st.lists(addresses, min_size=1, max_size=3), st.booleans())
def webhook_address_is_public_or_refused(url: str, resolved: list[str], known: bool) -> None:
    async def resolve(_: str, __: int) -> Sequence[str]:
        return resolved

    guard = SsrfGuard(resolve if known else resolve_nothing, allow_private=False)
    destination = outcome(lambda: asyncio.run(guard.resolve_destination(url)), AddressRefused, SendFailed)
    if isinstance(destination, Exception):
        assert str(destination)
        return
    assert all(map(is_public, destination.addresses))
    assert destination.url.scheme == "https"
    assert destination.name.isascii()
    for kind in WebhookKind:
        assert redact_url(kind, url).startswith("https://")
    assert "@" not in urlsplit(redact_url(WebhookKind.WEBHOOK, url)).netloc


@holds_for(words | urls)
def external_link_is_a_web_address(url: str) -> None:
    assert safe_external_url(url) is None or url.lower().startswith(("http://", "https://"))


typed = st.lists(
    st.sampled_from(["git.local", "/", ":", "acme", "app", "main", "..", "git.local:80"]) | words, max_size=8
)


@holds_for(typed.map("".join))
def typed_name_is_parsed_or_refused(text: str) -> None:
    for read in (parse_repo, parse_queue_name, parse_topic):
        assert outcome(lambda read=read: read(text), RequestRefused)
    named = outcome(lambda: RepoName.parse(text), ValueError)
    assert isinstance(named, ValueError) or str(named).lower() == text.lower()


@holds_for(words)
def valid_name_never_leaves_its_folder(name: str) -> None:
    for is_valid in (is_repository_name, is_owner, is_target_branch):
        if is_valid(name):
            assert name.encode()
            assert not name.startswith(("-", "/"))
            assert not any(part in (".", "..") for part in name.split("/"))
            assert "\0" not in name
