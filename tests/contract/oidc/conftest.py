"""A fake identity provider for each test."""

from collections.abc import Iterator

import pytest

from tests.contract.oidc.environment import OidcEnvironment
from tests.support.clock import ManualClock
from tests.support.identity_provider import IdentityProvider


@pytest.fixture
def env() -> Iterator[OidcEnvironment]:
    clock = ManualClock()
    with IdentityProvider(clock) as provider:
        yield OidcEnvironment(provider, clock)
