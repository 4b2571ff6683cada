"""`mergeyard login`, `logout` and `server` with a real server: what is stored, and what later commands use."""

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mergeyard.cli import app
from tests.support.environment import ServerEnvironment, new_token
from tests.support.terminal import COMMAND, CommandLine, a_running_environment, a_screen


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEnvironment]:
    with a_running_environment(tmp_path_factory.mktemp("login")) as env:
        yield env


@pytest.fixture(scope="module")
def secret(env: ServerEnvironment) -> str:
    return new_token(env.server.config)


class User(CommandLine):
    """Has no variables, but a home for stored servers, and a file with a token."""

    def __init__(self, home: Path, secret: str) -> None:
        super().__init__("", "")
        self.environment["XDG_CONFIG_HOME"] = str(home / "config")
        self.stored_file = home / "config" / "mergeyard" / "servers.toml"
        self.token_file = home / "token"
        self.token_file.write_text(f"{secret}\n")

    def sign_in(self, url: str, *options: str) -> str:
        result = self.run("login", url, "--token-file", str(self.token_file), *options)
        assert result.exit_code == 0, result.output
        return result.stderr

    @property
    def stored(self) -> dict[str, Any]:
        return tomllib.loads(self.stored_file.read_text())


@pytest.fixture
def user(tmp_path: Path, secret: str) -> User:
    return User(tmp_path, secret)


def test_a_user_signs_in_and_needs_no_variables(env: ServerEnvironment, user: User, secret: str):
    name = env.server.url.removeprefix("http://")
    shown = user.sign_in(f"{env.server.url}/")
    assert shown.startswith(f"Signed in to {name} with the token tests (scopes: ")
    assert f"{name} is now the default server. The token is stored in {user.stored_file}." in shown
    assert secret not in shown
    assert stat.S_IMODE(user.stored_file.stat().st_mode) == 0o600
    assert user.stored == {"default": name, "servers": {name: {"url": env.server.url, "token": secret}}}
    assert user.run_json("queue", "show")["branch"] == "main"
    words = {"_MERGEYARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "mergeyard status --queue "}
    completed = CliRunner(env=user.environment | words).invoke(app, [], prog_name="mergeyard").stdout
    assert '"git.local/acme/app\\\\:main"' in completed
    assert user.run_json("server", "list") == {"servers": [{"name": name, "url": env.server.url, "isDefault": True}]}


def test_a_second_sign_in_replaces_the_token_under_the_same_name(env: ServerEnvironment, user: User):
    user.sign_in(env.server.url, "--name", "work")
    user.token_file.write_text(new_token(env.server.config))
    user.sign_in(env.server.url)
    assert user.stored["servers"].keys() == {"work"}
    assert user.stored["servers"]["work"]["token"] == user.token_file.read_text()


def test_the_response_of_the_api_is_printed_with_json(env: ServerEnvironment, user: User):
    printed = user.run_json("login", env.server.url, "--token-file", str(user.token_file))
    assert (printed["name"], "admin" in printed["scopes"]) == ("tests", True)


def test_a_wrong_token_or_server_is_not_stored(env: ServerEnvironment, user: User):
    given = ("--token-file", str(user.token_file))
    assert "not a URL" in user.run_failing(64, "login", "queue.example.com", *given)
    assert "error: http://127.0.0.1:9: The server does not respond" in user.run_failing(
        4, "login", "http://127.0.0.1:9", *given
    )
    user.token_file.write_text("my_wrong")
    refusal = user.run_failing(6, "login", env.server.url, *given)
    assert "(invalid_token, " in refusal
    assert "my_wrong" not in refusal
    assert "hint: Pass a file with --token-file" in user.run_failing(64, "login", env.server.url)
    assert not user.stored_file.parent.exists()


def test_a_user_learns_of_a_connection_without_encryption_before_the_token_is_sent(user: User):
    user.environment["NO_PROXY"] = "*"
    shown = user.run_failing(4, "login", "http://0.0.0.0:9", "--token-file", str(user.token_file))
    assert shown.startswith("hint: This connection is not encrypted")


def test_a_folder_that_cannot_be_written_is_reported(env: ServerEnvironment, user: User):
    user.stored_file.parents[1].mkdir()
    user.stored_file.parent.write_text("a file")
    refusal = user.run_failing(64, "login", env.server.url, "--token-file", str(user.token_file))
    assert refusal.startswith(f"error: Cannot write {user.stored_file} (")
    assert "\nhint: Make the folder writable" in refusal


def test_two_servers_have_names_and_one_is_the_default(env: ServerEnvironment, user: User):
    other = env.server.url.replace("127.0.0.1", "localhost")
    user.environment["NO_PROXY"] = "127.0.0.1,localhost"
    user.sign_in(env.server.url, "--name", "first")
    user.sign_in(other, "--name", "second")
    assert user.run_ok("version").splitlines()[1].split()[:2] == ["server", "second"]
    assert user.run("server", "use", "first").stderr == "The default server is first.\n"
    assert user.run_ok("version").splitlines()[1].split()[:2] == ["server", "first"]
    assert user.run_ok("version", "--server", "second").splitlines()[1].split()[:2] == ["server", "second"]
    rows = [line.split() for line in user.run_ok("server", "list").splitlines()]
    assert rows == [["NAME", "URL", "DEFAULT"], ["first", env.server.url, "default"], ["second", other]]
    given = ("--token-file", str(user.token_file))
    taken = user.run_failing(64, "login", env.server.url, "--name", "second", *given)
    assert "Choose another name with --name" in taken
    assert "cannot be the name of a server" in user.run_failing(64, "login", other, "--name", "a b", *given)
    assert "No stored server has the name third" in user.run_failing(64, "server", "use", "third")
    left = user.run("logout", "--json")
    assert left.stdout == f'{{"servers": [{{"name": "second", "url": "{other}", "isDefault": true}}]}}\n'
    assert "The default server is second." in left.stderr
    assert user.stored["servers"].keys() == {"second"}
    assert "No stored server has the name first" in user.run_failing(64, "logout", "first")
    assert "stays valid" in user.run("logout", "second").stderr
    assert "No default server is set" in user.run_failing(64, "logout")
    assert "hint: Sign in with `mergeyard login" in user.run_failing(64, "queue", "list")
    assert user.run("server", "list").stderr == "No servers. Sign in with `mergeyard login URL`.\n"


def test_the_token_is_typed_at_a_terminal_and_not_shown(env: ServerEnvironment, user: User, secret: str):
    given = {name: value for name, value in (os.environ | user.environment).items() if value is not None}
    with a_screen([*COMMAND, "login", env.server.url], given | {"TERM": "xterm-256color"}) as screen:
        screen.wait_for_text("Token:")
        user.sign_in(env.server.url, "--name", "meanwhile")
        screen.press(f"{secret}\n")
        assert screen.wait_for_exit() == 0
    assert f"creates tokens at {env.server.url}/administration/tokens" in screen.output
    assert "is now the default server" in screen.output
    assert secret not in screen.output
    assert len(user.stored["servers"]) == 2
