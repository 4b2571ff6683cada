"""`token` and `webhook` commands against a real server, from a folder without a database."""

import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from tests.support.environment import ServerEnvironment, new_token
from tests.support.terminal import COMMAND, CommandLine, a_running_environment, a_screen

REPO = {"host": "git.local", "owner": "acme", "name": "app"}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEnvironment]:
    with a_running_environment(tmp_path_factory.mktemp("admin")) as env:
        yield env


@pytest.fixture
def terminal(env: ServerEnvironment, tmp_path: Path) -> Iterator[CommandLine]:
    with chdir(tmp_path):
        yield CommandLine(env.server.url, new_token(env.server.config))
    assert list(tmp_path.iterdir()) == []


def environment_of(terminal: CommandLine) -> dict[str, str]:
    return {name: value for name, value in (os.environ | terminal.environment).items() if value is not None}


@pytest.mark.long
def test_a_token_is_created_used_and_revoked_over_the_api(env: ServerEnvironment, terminal: CommandLine):
    notice = f"Using the server {env.server.url.removeprefix('http://')} ({env.server.url})."
    result = terminal.run("token", "create", "--name", "robot", "--scope", "read")
    assert result.stderr.splitlines() == [
        notice,
        "Created the token robot. Scopes: read. Expires: never. The token is not shown again.",
    ]
    robot = CommandLine(env.server.url, result.stdout.strip())
    assert len(robot.run_json("queue", "list")["queues"]) == 1
    assert "lacks the scope" in robot.run_failing(6, "token", "list")
    (listed,) = [each for each in terminal.run_json("token", "list")["tokens"] if each["name"] == "robot"]
    assert (listed["scopes"], listed["repositories"], listed["expiresAt"]) == (["read"], [], None)
    assert terminal.run("token", "revoke", "robot").stderr.splitlines()[-1] == "Revoked robot."
    robot.run_failing(6, "queue", "list")


def test_a_limited_token_creates_only_limited_tokens(env: ServerEnvironment, terminal: CommandLine):
    options = ("--scope", "admin", "--repo", "git.local/acme/app")
    limited = CommandLine(env.server.url, terminal.run_ok("token", "create", "--name", "limited", *options).strip())
    assert "limited to some repositories" in limited.run_failing(6, "token", "create", "--name", "mine")
    created = limited.run_json("token", "create", "--name", "mine", "--repo", "git.local/acme/app")
    assert created["repositories"] == [REPO]
    names = {each["name"] for each in limited.run_json("token", "list")["tokens"]}
    assert names == {"limited", "mine"}
    assert "No token with the name or id tests is valid." in limited.run_failing(1, "token", "revoke", "tests")


def test_a_webhook_is_managed_over_the_api(terminal: CommandLine):
    created = terminal.run_json("webhook", "create", "https://93.184.215.14/x", "--queue", "git.local/acme/app")
    assert created.pop("secret").startswith("whsec_")
    assert terminal.run_json("webhook", "list") == {"webhooks": [created]}
    assert terminal.run_json("webhook", "update", created["id"], "--disable")["enabled"] is False
    assert terminal.run_json("webhook", "deliveries", created["id"]) == {"deliveries": []}
    assert "is not among the last deliveries" in terminal.run_failing(3, "webhook", "resend", created["id"], "msg_x")
    assert terminal.run_json("webhook", "delete", created["id"]) == {"deleted": True, "id": created["id"]}
    assert "There is no webhook with the id" in terminal.run_failing(3, "webhook", "delete", created["id"])


@pytest.mark.parametrize("answer", ["n", "y"])
def test_on_a_terminal_a_revocation_is_confirmed(terminal: CommandLine, answer: str):
    terminal.run_ok("token", "create", "--name", answer)
    with a_screen((*COMMAND, "token", "revoke", answer), environment_of(terminal)) as screen:
        screen.wait_for_text(f"Revoke the token {answer}? Scopes: read, submit, targets.")
        screen.press(f"{answer}\r")
        assert screen.wait_for_exit() == (0 if answer == "y" else 130)
    (token,) = [each for each in terminal.run_json("token", "list")["tokens"] if each["name"] == answer]
    assert (token["revokedAt"] is not None) == (answer == "y")


def test_on_a_terminal_the_deletion_of_a_webhook_is_confirmed(terminal: CommandLine):
    made = terminal.run_json("webhook", "create", "https://93.184.215.14/x")["id"]
    with a_screen((*COMMAND, "webhook", "delete", made), environment_of(terminal)) as screen:
        screen.wait_for_text(f"Delete webhook {made}?")
        screen.press("n\r")
        assert screen.wait_for_exit() == 130
    assert [each["id"] for each in terminal.run_json("webhook", "list")["webhooks"]] == [made]
    terminal.run_ok("webhook", "delete", made, "--yes")
