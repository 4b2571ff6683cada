"""Logs and counts requests that were refused because of their credentials, so that an attack is visible.

A client can send any number of such requests. Per minute, one client address gets a few log lines of each kind, and
all addresses together get a limited number; the rest is counted and reported in one line when the minute is over.
"""

from collections import Counter
from enum import StrEnum

import structlog

from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.tokens import Token
from mergeyard.ports.clock import Clock
from mergeyard.service.background import Background
from mergeyard.service.measuring import REFUSED_REQUESTS

log = structlog.get_logger()

WINDOW_MS = MINUTE
MAX_LINES_PER_ADDRESS = 5
MAX_LINES = 100
MAX_ADDRESS_CHARS = 100
MAX_FIELD_CHARS = 500
OTHER_ADDRESSES = "others"


class RefusalKind(StrEnum):
    """The event in the log and the label `kind` of the metric."""

    TOKEN_REJECTED = "token_rejected"
    SIGN_IN_FAILED = "sign_in_failed"
    SCOPE_MISSING = "scope_missing"
    WEBHOOK_SIGNATURE_INVALID = "webhook_signature_invalid"


for kind in RefusalKind:
    REFUSED_REQUESTS.labels(kind)


class RefusalLog:
    def __init__(self, clock: Clock, background: Background) -> None:
        self._clock = clock
        self._background = background
        self._window_ends = Instant(0)
        self._written = Counter[tuple[RefusalKind, str]]()
        self._suppressed = Counter[tuple[RefusalKind, str]]()

    def record(self, kind: RefusalKind, address: str, token: Token | None = None, **fields: str) -> None:
        """`token` is the one that was presented, where it is known; its secret is never passed here."""
        address = address[:MAX_ADDRESS_CHARS]
        REFUSED_REQUESTS.labels(kind).inc()
        if self._clock.now() >= self._window_ends:
            self._begin_window()
        key = (kind, address)
        if self._written[key] < MAX_LINES_PER_ADDRESS and self._written.total() < MAX_LINES:
            self._written[key] += 1
            known = {} if token is None else {"token_id": token.id, "token_name": token.name}
            shown = {name: value[:MAX_FIELD_CHARS] for name, value in fields.items()}
            log.warning(kind.value, client=address, **known, **shown)
            return
        if not self._suppressed:
            self._background.start(self._report_later())
        # An address without a line in this window is not named, so the table stays small.
        self._suppressed[key if key in self._written else (kind, OTHER_ADDRESSES)] += 1

    def _begin_window(self) -> None:
        self._report()
        self._written.clear()
        self._window_ends = Instant(self._clock.now() + WINDOW_MS)

    async def _report_later(self) -> None:
        await self._clock.sleep(max(0, self._window_ends - self._clock.now()))
        self._report()

    def _report(self) -> None:
        for (kind, address), count in self._suppressed.items():
            log.warning("refusals_suppressed", kind=kind.value, client=address, count=count)
        self._suppressed.clear()
