"""What both clients share about HTTP: the address, the token, and how an outcome is told."""

from typing import Any

import httpx

from mergeyard.client.steps import Reply, Sending, Silence

GREETING = 10.0
"""Seconds until somebody who is there has let us in."""


def options(url: str, token: str) -> dict[str, Any]:
    """Redirects are not followed: the token is for this server alone."""
    if not is_address(url):
        raise ValueError(f"{url!r} is no address: write it as https://queue.example.com.")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("The token has characters in it that no token has: copy it again.")
    return {"base_url": url, "headers": {"x-api-token": token, "user-agent": "mergeyard-client"}}


def is_address(url: str) -> bool:
    try:
        return httpx.URL(url).scheme in ("http", "https") and bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def arguments(sending: Sending) -> dict[str, Any]:
    return {
        "method": sending.method,
        "url": sending.path,
        "params": dict(sending.query),
        "content": sending.content,
        "headers": dict(sending.headers),
        "timeout": httpx.Timeout(sending.seconds, connect=min(sending.seconds, GREETING)),
    }


def reply(response: httpx.Response) -> Reply:
    retry_after = response.headers.get("retry-after")
    return Reply(status=response.status_code, body=response.content, retry_after=retry_after)


def silence(trouble: httpx.RequestError) -> Silence:
    if isinstance(trouble, httpx.ReadTimeout):
        return Silence("It was asked, but did not answer in time. It may still be at work: look before you ask again.")
    why = str(trouble) or type(trouble).__name__
    return Silence(f"It does not answer ({why}): check the address, and whether the server runs.")
