"""The program as a separate process: version, unexpected errors, invalid settings, client addresses, warnings."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from mergeyard import __version__
from tests.support.forked_server import ForkedServer
from tests.support.polling import eventually


def mergeyard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mergeyard", *arguments], capture_output=True, text=True, check=False)


def test_version_is_printed():
    assert mergeyard("--version").stdout == f"mergeyard {__version__}\n"


def test_unexpected_error_is_shown_with_an_exit_code_of_its_own():
    script = "import sys; sys.argv = ['mergeyard', 'stumble']\n"
    script += "from mergeyard.__main__ import app, main\napp.command('stumble')(lambda: 1 // 0)\nmain()"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (70, "")
    assert "ZeroDivisionError" in answer.stderr


@pytest.mark.long
def test_server_does_not_start_with_invalid_settings():
    answer = mergeyard("serve", "--port", "99999")
    assert answer.returncode == 1
    assert "--port: expected a whole number from 0 to 65535" in answer.stderr


FORWARDED = {"x-api-token": "my_wrong", "x-forwarded-for": "203.0.113.9, 192.0.2.9"}


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "127.0.0.1"),
        ({"trusted_proxies": "127.0.0.0/8"}, "192.0.2.9"),
        pytest.param({"trusted_proxies": "::1"}, "127.0.0.1", marks=pytest.mark.long),
    ],
)
def test_a_rejected_token_is_logged_with_the_address_of_its_client(
    tmp_path: Path, settings: dict[str, str], address: str
):
    server = ForkedServer(tmp_path, **settings)
    server.start()
    try:
        answer = httpx2.post(f"{server.url}/v1/getQueue", headers=FORWARDED, trust_env=False)
        assert answer.status_code == 401
        lines = eventually(lambda: [line for line in server.log_entries() if line["event"] == "token_rejected"])
        assert [line["client"] for line in lines] == [address]
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o700, []), (0o750, ["0750"]), pytest.param(0o755, ["0755"], marks=pytest.mark.long)]
)
def test_server_warns_about_a_data_folder_that_other_users_can_access(tmp_path: Path, mode: int, warned: list[str]):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(mode)
    server = ForkedServer(tmp_path)
    server.start()
    server.stop()
    assert [line["mode"] for line in server.log_entries() if line["event"] == "data_dir_is_accessible"] == warned


@pytest.mark.parametrize("access_log", [False, True])
def test_requests_are_logged_only_if_the_access_log_is_on(tmp_path: Path, access_log: bool):
    server = ForkedServer(tmp_path, access_log=access_log)
    server.start()
    try:
        assert httpx2.get(f"{server.url}/healthz?code=hunter2", trust_env=False).status_code == 200
    finally:
        server.stop()
    entries = list(server.log_entries())
    assert "hunter2" not in str(entries)
    assert [(line["event"], line["path"], line["status"]) for line in entries if "status" in line] == (
        [("request", "/healthz", 200)] if access_log else []
    )


def test_pages_and_static_files_are_compressed_and_the_api_is_not(tmp_path: Path):
    server = ForkedServer(tmp_path)
    server.start()
    try:
        with httpx2.Client(base_url=server.url, trust_env=False) as client:
            encodings = {
                path: client.get(path).headers.get("content-encoding")
                for path in ("/sign-in", "/static/style.css", "/docs", "/v1/getQueue")
            }
    finally:
        server.stop()
    assert encodings == {"/sign-in": "gzip", "/static/style.css": "gzip", "/docs": "gzip", "/v1/getQueue": None}
