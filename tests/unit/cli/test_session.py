"""Commands that work on the database of this machine: they never create one, and report what they did."""

import json
from contextlib import chdir
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import typer
from msgspec import convert
from msgspec.structs import replace

from mergeyard.api.openapi import EXAMPLES
from mergeyard.cli import token, webhook
from mergeyard.cli.local_store import AdminSession
from mergeyard.client import ApiToken, Webhook
from mergeyard.service.tokens import is_well_formed
from tests.support.postgres import shared_server
from tests.support.terminal import CommandLine

COMMANDS = (
    ("token", "create", "--name", "ci"),
    ("token", "list"),
    ("token", "revoke", "x"),
    ("webhook", "list"),
    ("webhook", "create", "https://there.example/x"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_database_a_command_names_its_path_and_creates_none(tmp_path: Path, command: tuple[str, ...]):
    folder = tmp_path / "data"
    message = " ".join(CommandLine("", "").run_failing(64, *command, "--data-dir", str(folder)).split())
    assert message.startswith(f"error: {folder}/mergeyard.db contains no Mergeyard database. hint: Sign in")
    assert "--config, --data-dir or --database-url; `mergeyard serve` creates it." in message
    assert not folder.exists()


def test_webhooks_are_encrypted_again_with_the_newest_key(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    key = tmp_path / "sealing.key"
    terminal.run_ok("db", "migrate", *data_dir)
    terminal.environment["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    terminal.run_ok("webhook", "create", "http://127.0.0.1:9/x", *data_dir)
    old, new = key.read_text(), "22" * 32 + "\n"
    key.write_text(new)
    assert "was encrypted with another key" in terminal.run_failing(1, "webhook", "reseal", *data_dir)
    key.write_text(new + old)
    assert "Encrypted 1 webhooks" in terminal.run("webhook", "reseal", *data_dir).stderr
    key.write_text(new)
    assert "Not delivered" in terminal.run_failing(1, "webhook", "test", *webhook_arguments(terminal, data_dir))


def webhook_arguments(terminal: CommandLine, data_dir: tuple[str, ...]) -> tuple[str, ...]:
    (webhook,) = terminal.run_json("webhook", "list", *data_dir)["webhooks"]
    return (webhook["id"], *data_dir)


def test_a_command_does_not_fill_an_empty_postgresql_database():
    url = shared_server().fresh_database()
    for _ in range(2):
        assert "contains no Mergeyard database" in CommandLine("", "").run_failing(
            64, "token", "list", "--database-url", url
        )
    CommandLine("", "").run_ok("db", "migrate", "--database-url", url)
    notice = CommandLine("", "").run("token", "list", "--database-url", url).stderr
    assert notice.startswith(f"Using the database '{url.rpartition('/')[2]}' at ")


def test_a_database_that_is_named_is_used_even_if_a_server_is_configured(tmp_path: Path):
    terminal, data_dir = CommandLine("http://127.0.0.1:9", "my_token"), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    result = terminal.run("token", "create", "--name", "ci", *data_dir)
    notice, summary = result.stderr.splitlines()
    assert notice == f"Using the database {tmp_path}/mergeyard.db."
    assert summary == (
        "Created the token ci. Scopes: read, submit, targets. Expires: never. The token is not shown again."
    )
    assert is_well_formed(result.stdout.rstrip("\n").encode())
    assert "ci" in terminal.run_ok("token", "list", *data_dir)


def test_without_options_and_server_the_database_of_the_current_folder_is_used(tmp_path: Path):
    terminal = CommandLine("", "")
    (tmp_path / "mergeyard.toml").write_text('data_dir = "elsewhere"\n')
    with chdir(tmp_path):
        terminal.run_ok("db", "migrate")
        terminal.run_ok("token", "create", "--name", "ci")
        assert [each["name"] for each in terminal.run_json("token", "list")["tokens"]] == ["ci"]
    assert (tmp_path / "elsewhere" / "mergeyard.db").exists()


@pytest.mark.parametrize("sign", ["mergeyard.toml", "mergeyard-data", "MERGEYARD_DATA_DIR"])
def test_a_command_stops_when_a_server_is_configured_and_another_may_be_in_this_folder(tmp_path: Path, sign: str):
    terminal = CommandLine("http://127.0.0.1:9", "my_token")
    if sign == "MERGEYARD_DATA_DIR":
        terminal.environment[sign] = str(tmp_path)
    elif sign == "mergeyard-data":
        (tmp_path / sign).mkdir()
    else:
        (tmp_path / sign).write_text("")
    with chdir(tmp_path):
        message = " ".join(terminal.run_failing(64, "token", "create", "--name", "ci").split())
        assert message.startswith("error: Two servers are possible: 127.0.0.1:9 (http://127.0.0.1:9), and the one of")
        assert sign in message
        assert "pass --url http://127.0.0.1:9" in message
        assert "--config mergeyard.toml" in message
        remote = terminal.run_failing(64, "token", "create", "--name", "ci", "--server", "gone")
        assert "No stored server has the name gone." in remote
        chosen = terminal.run_failing(64, "token", "create", "--name", "ci", "--data-dir", str(tmp_path))
    assert "contains no Mergeyard database" in chosen


@pytest.mark.parametrize("option", ["--url", "--server"])
def test_a_server_and_a_database_cannot_both_be_named(tmp_path: Path, option: str):
    arguments = ("token", "list", option, "https://queue.example.com", "--data-dir", str(tmp_path))
    assert "Pass options of one kind." in CommandLine("", "").run_failing(64, *arguments)


def test_a_token_has_the_given_scopes_repositories_and_expiry(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    options = ("--scope", "read", "--scope", "status", "--repo", "GitHub.com/acme/app", "--expires", "2w")
    created = terminal.run_json("token", "create", "--name", "ci", *options, *data_dir)
    assert is_well_formed(created.pop("secret").encode())
    assert terminal.run_json("token", "list", *data_dir) == {"tokens": [created]}
    assert created["scopes"] == ["read", "status"]
    assert created["repositories"] == [{"host": "github.com", "owner": "acme", "name": "app"}]
    lifetime = datetime.fromisoformat(created["expiresAt"]) - datetime.fromisoformat(created["createdAt"])
    assert abs(lifetime - timedelta(weeks=2)) < timedelta(minutes=1)
    refusal = terminal.run_failing(64, "token", "create", "--name", "ci", "--expires", "soon", *data_dir)
    assert "write --expires 12h, 90d or 8w" in refusal


def test_a_secret_has_no_control_characters(capsys: pytest.CaptureFixture[str]):
    created = convert(EXAMPLES["createToken"].response, ApiToken)
    token.show_created(AdminSession(), replace(created, secret="my_\x1b[2J"))
    assert capsys.readouterr().out == "my_�[2J\n"


def test_webhook_commands_print_the_objects_of_the_api(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    terminal.environment["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    options = ("--event", "queue.updated", "--queue", "git.local:1/acme/app:main", "--queue", "git.local/acme/app")
    created = terminal.run_json("webhook", "create", "http://127.0.0.1:9/x", *options, *data_dir)
    assert created.pop("secret").startswith("whsec_")
    repo = {"owner": "acme", "name": "app"}
    assert created["queues"] == [
        {"repo": {"host": "git.local:1"} | repo, "targetBranch": "main"},
        {"repo": {"host": "git.local"} | repo},
    ]
    assert terminal.run_json("webhook", "list", *data_dir) == {"webhooks": [created]}
    changed = terminal.run_json("webhook", "update", created["id"], "--disable", *data_dir)
    assert changed == created | {"enabled": False, "disabled": changed["disabled"]}
    tested = terminal.run("webhook", "test", created["id"], "--json", *data_dir)
    assert tested.exit_code == 1
    delivery = json.loads(tested.stdout)
    assert (delivery["type"], delivery["delivered"]) == ("webhook.test", False)
    assert terminal.run_json("webhook", "deliveries", created["id"], *data_dir) == {"deliveries": [delivery]}
    assert terminal.run_json("webhook", "delete", created["id"], *data_dir) == {"deleted": True, "id": created["id"]}
    assert "--limit" in terminal.run_failing(64, "webhook", "deliveries", "x", "--limit", "101", *data_dir)


def test_a_token_is_revoked_by_its_name_or_its_id(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    for _ in range(2):
        terminal.run_ok("token", "create", "--name", "temp", *data_dir)
    first, second = (token["id"] for token in terminal.run_json("token", "list", *data_dir)["tokens"])
    refusal = terminal.run_failing(1, "token", "revoke", "temp", *data_dir)
    assert "Several tokens have the name temp.\nhint: Revoke one by its id:" in refusal
    assert {first, second} <= set(refusal.split())
    tokens = terminal.run_json("token", "list", *data_dir)["tokens"]
    assert [token["revokedAt"] for token in tokens] == [None, None]
    for name in (first, "temp"):
        result = terminal.run("token", "revoke", name, *data_dir)
        assert (result.exit_code, result.stdout, result.stderr.splitlines()[-1]) == (0, "", "Revoked temp.")
    assert "`mergeyard token list` shows all tokens" in terminal.run_failing(1, "token", "revoke", "temp", *data_dir)
    tokens = terminal.run_json("token", "list", *data_dir)["tokens"]
    assert [token["revokedAt"][-1] for token in tokens] == ["Z"] * 2
    assert terminal.run_ok("token", "list", *data_dir).count(" revoked ") == 2


def test_lists_are_plain_columns_and_empty_ones_say_so(tmp_path: Path):
    terminal, data_dir = CommandLine("", ""), ("--data-dir", str(tmp_path))
    terminal.run_ok("db", "migrate", *data_dir)
    for command, message in (("webhook", "No webhooks. "), ("token", "No tokens. ")):
        result = terminal.run(command, "list", *data_dir)
        assert (result.stdout, result.stderr.splitlines()[-1].startswith(message)) == ("", True)
    terminal.run_ok("token", "create", "--name", "ci", *data_dir)
    header, row = terminal.run_ok("token", "list", *data_dir).splitlines()
    assert header.split()[:3] == ["ID", "NAME", "SCOPES"]
    assert row.split()[1:5] == ["ci", "read", "submit", "targets"]
    assert "TABLE" in terminal.run_ok("db", "check", *data_dir).splitlines()[1]


def test_a_response_without_the_secret_is_an_error_that_names_the_next_step(capsys: pytest.CaptureFixture[str]):
    session = AdminSession()
    created = convert(EXAMPLES["createToken"].response, ApiToken)
    token.show_created(session, created)
    assert capsys.readouterr().out == f"{created.secret}\n"
    with pytest.raises(typer.Exit):
        token.show_created(session, replace(created, secret=None))
    assert f"Revoke it with `mergeyard token revoke {created.id}`" in capsys.readouterr().err
    made = convert(EXAMPLES["createWebhook"].response, Webhook)
    with pytest.raises(typer.Exit):
        webhook.show_created(session, replace(made, secret=None))
    assert f"Delete it with `mergeyard webhook delete {made.id}`" in capsys.readouterr().err
    webhook.show_created(session, replace(made, kind="slack", secret=None))
    assert capsys.readouterr().out == ""
