"""A provider for each test."""

from collections.abc import Iterator

import pytest

from tests.contract.oidc.stage import OidcStage
from tests.support.clock import HandClock
from tests.support.identity_provider import IdentityProvider


@pytest.fixture
def stage() -> Iterator[OidcStage]:
    clock = HandClock()
    with IdentityProvider(clock) as provider:
        yield OidcStage(provider, clock)
