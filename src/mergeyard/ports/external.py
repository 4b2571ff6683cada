"""Ports of everything besides store, git and forges: clock, runner, encryption, webhooks, sign-on, helpers."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant, MergeEstimate


class Clock(Protocol):
    def now(self) -> Instant: ...

    async def sleep(self, milliseconds: int) -> None: ...


class SandboxUnavailableError(Exception):
    """The settings require a sandbox for checks, and this machine cannot provide one. The message says what to do."""


class CheckJob(Struct, frozen=True, kw_only=True):
    """The checks of one run. Each command runs in its own clean checkout."""

    run: RunId
    repo: Repo
    commit: Sha
    commands: Mapping[str, str]
    timeout_ms: int
    """Milliseconds for each command."""


class CheckResult(Struct, frozen=True):
    run: RunId
    commit: Sha
    check: str
    state: StatusState
    description: str


class CheckRunner(Protocol):
    async def start(self, job: CheckJob) -> None:
        """Starts the job, unless the run already has one."""
        ...

    async def stop(self, run: RunId) -> None:
        """Kills all processes of the run. No result follows."""
        ...

    async def next_result(self) -> CheckResult:
        """Waits for the next state of any command: pending when it starts, then its result."""
        ...

    def active_run_ids(self) -> frozenset[RunId]: ...

    async def output(self, run: RunId, check: str) -> bytes | None:
        """The output of a command so far."""
        ...

    async def delete_outputs(self, before: Instant) -> None:
        """Deletes outputs last written before this time, except those of active runs."""
        ...

    async def close(self) -> None: ...


class EncryptionError(Exception):
    """There is no key, or another one than the secret was encrypted with. The message says what to do."""


class SecretBox(Protocol):
    def encrypt(self, plaintext: bytes, purpose: str, /) -> bytes:
        """Raises `EncryptionError`."""
        ...

    def decrypt(self, ciphertext: bytes, purpose: str, /) -> bytes:
        """Only for the purpose it was encrypted for. Raises `EncryptionError`."""
        ...


class AddressRefused(Exception):
    """The address is not allowed. The message says what to change."""


class SendFailed(Exception):
    """No response was received."""


class SendResponse(Struct, frozen=True):
    status: int
    body_excerpt: str
    """The beginning of the response body."""


class Sender(Protocol):
    async def check(self, url: str) -> None:
        """Raises `AddressRefused`."""
        ...

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResponse:
        """Sends once and follows no redirects. Raises `AddressRefused` or `SendFailed`."""
        ...


class Person(Struct, frozen=True):
    name: str
    groups: frozenset[str] = frozenset()
    subject: str = ""
    """Issuer and `sub`: identify the person permanently, while the name can change."""


class AuthorizationRedirect(Struct, frozen=True):
    """Where to send the browser to sign in, and the encrypted login state that it keeps until it returns."""

    url: str
    login_state: str


class SsoLogin(Struct, frozen=True):
    person: Person
    return_to: str
    """The page that the user asked for."""


class SsoLoginRefused(Exception):
    """The identity provider did not confirm the user. The message tells the user why and what to do."""


class IdentityProviderUnavailable(Exception):
    """The identity provider does not respond, or not as expected. The message is for the user, `detail` for the
    operator."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class IdentityProvider(Protocol):
    async def begin_login(self, return_to: str, /) -> AuthorizationRedirect:
        """Raises `IdentityProviderUnavailable`."""
        ...

    async def complete_login(self, parameters: Mapping[str, str], login_state: str, /) -> SsoLogin:
        """The user who signed in, from the parameters that the provider sent back. Raises `SsoLoginRefused` and
        `IdentityProviderUnavailable`."""
        ...


class ForecastUnavailable(Exception):
    """No forecast was made. The estimates of the engine are shown instead."""


Forecast = Mapping[SubmissionId, MergeEstimate | None]
"""None: no time should be shown for this submission. For submissions that are absent there is no forecast."""
EMPTY_FORECAST: Forecast = {}


class Forecaster(Protocol):
    async def forecast(self, queue: Queue, now: Instant) -> Forecast:
        """For all submissions in the queue, assuming that none is added. Raises `ForecastUnavailable`."""
        ...

    async def close(self) -> None: ...
