"""Commands that work on the database of this machine: they never create one, and report what they did."""

from pathlib import Path

import pytest

from tests.support.postgres import shared_server
from tests.support.terminal import CommandLine

COMMANDS = (
    ("token", "create", "--name", "ci"),
    ("token", "list"),
    ("token", "revoke", "x"),
    ("webhook", "list"),
    ("webhook", "create", "--url", "https://there.example/x"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_database_a_command_names_its_path_and_creates_none(tmp_path: Path, command: tuple[str, ...]):
    folder = tmp_path / "data"
    message = " ".join(CommandLine("", "").run_failing(64, *command, "--data-dir", str(folder)).split())
    assert "mergeyard.db" in message
    assert "Start `mergeyard serve` once" in message
    assert "--config, --data-dir or --database-url" in message
    assert not folder.exists()


def test_webhooks_are_encrypted_again_with_the_newest_key(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    key = tmp_path / "sealing.key"
    terminal.run_ok("db", "migrate", *data_dir)
    terminal.environment["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    terminal.run_ok("webhook", "create", "--url", "http://127.0.0.1:9/x", *data_dir)
    old, new = key.read_text(), "22" * 32 + "\n"
    key.write_text(new)
    assert "was encrypted with another key" in terminal.run_failing(1, "webhook", "reseal", *data_dir)
    key.write_text(new + old)
    assert "Encrypted 1 webhooks" in terminal.run("webhook", "reseal", *data_dir).stderr
    key.write_text(new)
    assert "Not delivered" in terminal.run_failing(1, "webhook", "test", *webhook_arguments(terminal, data_dir))


def webhook_arguments(terminal: CommandLine, data_dir: tuple[str, ...]) -> tuple[str, ...]:
    (webhook,) = terminal.run_json("webhook", "list", *data_dir)
    return (webhook["id"], *data_dir)


def test_a_command_does_not_fill_an_empty_postgresql_database():
    url = shared_server().fresh_database()
    for _ in range(2):
        assert "Start `mergeyard serve` once" in CommandLine("", "").run_failing(
            64, "token", "list", "--database-url", url
        )


def test_an_existing_database_is_used(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    terminal.run_ok("token", "create", "--name", "ci", *data_dir)
    assert "ci" in terminal.run_ok("token", "list", *data_dir)


def test_a_token_is_revoked_by_its_name_or_its_id(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    for _ in range(2):
        terminal.run_ok("token", "create", "--name", "temp", *data_dir)
    first, second = (token["id"] for token in terminal.run_json("token", "list", *data_dir))
    refusal = terminal.run_failing(1, "token", "revoke", "temp", *data_dir)
    assert "Several tokens have the name temp. Revoke one by its id:" in refusal
    assert {first, second} <= set(refusal.split())
    assert [token["state"] for token in terminal.run_json("token", "list", *data_dir)] == ["valid", "valid"]
    for name in (first, "temp"):
        result = terminal.run("token", "revoke", name, *data_dir)
        assert (result.exit_code, result.output) == (0, "Revoked temp.\n")
    assert "`mergeyard token list` shows all tokens" in terminal.run_failing(1, "token", "revoke", "temp", *data_dir)
    tokens = terminal.run_json("token", "list", *data_dir)
    assert [(token["state"], token["created"][-1]) for token in tokens] == [("revoked", "Z")] * 2


def test_lists_are_plain_columns_and_empty_ones_say_so(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    assert terminal.run("webhook", "list", *data_dir).output.startswith("No webhooks. ")
    assert terminal.run("token", "list", *data_dir).output.startswith("No tokens. ")
    terminal.run_ok("token", "create", "--name", "ci", *data_dir)
    header, row = terminal.run_ok("token", "list", *data_dir).splitlines()
    assert header.split()[:3] == ["ID", "NAME", "SCOPES"]
    assert row.split()[1:5] == ["ci", "read", "submit", "targets"]
    assert "TABLE" in terminal.run_ok("db", "check", *data_dir).splitlines()[1]
