"""Commands that need a database never make one."""

from pathlib import Path

import pytest

from tests.support.postgres import shared_server
from tests.support.terminal import Terminal

COMMANDS = (
    ("token", "create", "--name", "ci"),
    ("token", "list"),
    ("token", "revoke", "x"),
    ("webhook", "list"),
    ("webhook", "create", "--url", "https://there.example/x"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_database_a_command_says_where_it_looked_and_makes_none(tmp_path: Path, command: tuple[str, ...]):
    folder = tmp_path / "data"
    said = " ".join(Terminal("", "").refused(64, *command, "--data-dir", str(folder)).split())
    assert "mergeyard.db" in said
    assert "Start `mergeyard serve` once" in said
    assert "--config, --data-dir or --database-url" in said
    assert not folder.exists()


def test_webhooks_are_sealed_again_with_the_newest_key(tmp_path: Path):
    terminal, place = Terminal("", ""), ("--data-dir", str(tmp_path))
    key = tmp_path / "sealing.key"
    terminal.done("db", "migrate", *place)
    terminal.environment["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    terminal.done("webhook", "create", "--url", "http://127.0.0.1:9/x", *place)
    old, new = key.read_text(), "22" * 32 + "\n"
    key.write_text(new)
    assert "was sealed with another key" in terminal.refused(1, "webhook", "reseal", *place)
    key.write_text(new + old)
    assert "Sealed 1 webhooks" in terminal.run("webhook", "reseal", *place).stderr
    key.write_text(new)
    assert "Not delivered" in terminal.refused(1, "webhook", "test", *webhook_in(terminal, place))


def webhook_in(terminal: Terminal, place: tuple[str, ...]) -> tuple[str, ...]:
    (webhook,) = terminal.answered("webhook", "list", *place)
    return (webhook["id"], *place)


def test_a_command_does_not_fill_an_empty_postgresql_database():
    url = shared_server().fresh_database()
    for _ in range(2):
        assert "Start `mergeyard serve` once" in Terminal("", "").refused(64, "token", "list", "--database-url", url)


def test_a_database_that_is_there_is_used(tmp_path: Path):
    terminal, place = Terminal("", ""), ("--data-dir", str(tmp_path))
    terminal.done("db", "migrate", *place)
    terminal.done("token", "create", "--name", "ci", *place)
    assert "ci" in terminal.done("token", "list", *place)
