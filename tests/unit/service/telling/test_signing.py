"""Whoever has the secret can tell what is ours, and nobody else can make it."""

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from mergeyard.domain.instants import Instant
from mergeyard.service.telling.signing import new_secret, signed


def now() -> Instant:
    return Instant(int(datetime.now(UTC).timestamp() * 1000))


def test_what_is_signed_is_verified_by_others():
    secret, body = new_secret(), '{"type":"größe 試験"}'
    headers = signed(secret, "msg_1", now(), body.encode())
    assert Verifier(secret).verify(body, headers) == {"type": "größe 試験"}


def test_what_was_changed_or_is_old_or_another_s_is_not():
    secret, body = new_secret(), '{"a":1}'
    headers = signed(secret, "msg_1", now(), body.encode())
    forged = [
        (secret, '{"a":2}', headers),
        (new_secret(), body, headers),
        (secret, body, headers | {"webhook-id": "msg_2"}),
        (secret, body, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)}),
        (secret, body, signed(secret, "msg_1", Instant(now() - 3_600_000), body.encode())),
    ]
    for key, content, above in forged:
        with pytest.raises(WebhookVerificationError):
            Verifier(key).verify(content, above)


def test_secrets_are_long_and_never_the_same():
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b64decode(secret.removeprefix("whsec_"))) for secret in secrets} == {32}
