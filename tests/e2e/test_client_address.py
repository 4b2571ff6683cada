"""The address of a client is that of the connection, unless a trusted proxy names another."""

from pathlib import Path

import httpx
import pytest

from tests.support.patience import eventually
from tests.support.quick_server import QuickServer

FORWARDED = {"x-api-token": "my_wrong", "x-forwarded-for": "203.0.113.9, 192.0.2.9"}


@pytest.mark.parametrize(
    ("settings", "address"),
    [({}, "127.0.0.1"), ({"trusted_proxies": "127.0.0.0/8"}, "192.0.2.9"), ({"trusted_proxies": "::1"}, "127.0.0.1")],
)
def test_a_rejected_token_is_logged_with_the_address_of_its_client(
    tmp_path: Path, settings: dict[str, str], address: str
):
    server = QuickServer(tmp_path, **settings)
    server.start()
    try:
        answer = httpx.post(f"{server.url}/v1/getQueue", headers=FORWARDED, trust_env=False)
        assert answer.status_code == 401
        lines = eventually(lambda: [line for line in server.told() if line["event"] == "token_rejected"])
        assert [line["client"] for line in lines] == [address]
    finally:
        server.stop()
