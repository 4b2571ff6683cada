"""Events reach a real receiver in order and without gaps, even if the server is killed during a delivery."""

from pathlib import Path
from threading import Event

import pytest
from msgspec import json
from standardwebhooks.webhooks import Webhook as Verifier
from typer.testing import CliRunner

from mergeyard.cli import db, webhook
from tests.e2e.conftest import StartEnvironment
from tests.support.environment import ServerEnvironment, run_command
from tests.support.webhooks import WebhookReceiver

STEPS = [f"pull_request.{state}" for state in ("submitted", "queued", "testing", "tests_passed", "merged")]


def start_with_private_webhooks(start_env: StartEnvironment) -> ServerEnvironment:
    """Its settings allow webhooks to this machine."""
    env = start_env.without_queue()
    env.server.stop()
    config = env.server.config
    config.write_text("allow_private_webhooks = true\n" + config.read_text())
    env.server.start()
    env.create_queue()
    return env


def create_webhook(env: ServerEnvironment, receiver: WebhookReceiver) -> str:
    """Returns the secret."""
    return env.api.post("createWebhook", url=receiver.url)["secret"]


def steps_of(receiver: WebhookReceiver, number: int) -> list[str]:
    return [event["type"] for event in receiver.unique_payloads() if event["data"]["pr_number"] == number]


@pytest.mark.long
@pytest.mark.parametrize(
    "killing_delivery", [1, pytest.param(4, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long)]
)
def test_killed_during_a_delivery(start_env: StartEnvironment, killing_delivery: int):
    env, receiver, submitted = start_with_private_webhooks(start_env), WebhookReceiver(), Event()

    def kill(arrived: int) -> None:
        """The first delivery gets no response before all pull requests are submitted."""
        submitted.wait()
        if arrived == killing_delivery:
            env.server.kill()
            raise ConnectionError

    with receiver.serve():
        secret = create_webhook(env, receiver)
        receiver.on_arrival = kill
        numbers = [env.open_pr({f"{name}.txt": "1"}) for name in "ab"]
        env.submit(*numbers)
        submitted.set()
        env.eventually(lambda: not env.server.alive)
        env.server.start()
        env.wait_for("merged", *numbers)
        env.eventually(lambda: all(steps_of(receiver, number)[-1:] == STEPS[-1:] for number in numbers))
        for number in numbers:
            assert steps_of(receiver, number) == STEPS
        for receipt in receiver.received:
            Verifier(secret).verify(receipt.body, dict(receipt.headers))


# Command line


@pytest.mark.long
def test_webhooks_are_managed_by_the_cli_while_the_server_runs(start_env: StartEnvironment):
    env, receiver = start_with_private_webhooks(start_env), WebhookReceiver()
    here = ("--config", str(env.server.config))
    with receiver.serve():
        secret = run_command(webhook.app, "create", receiver.url, "--event", "queue.updated", *here).strip()
        assert secret.startswith("whsec_")
        webhook_id = env.api.post("listWebhooks")["webhooks"][0]["id"]
        (listed,) = json.decode(run_command(webhook.app, "list", "--json", *here))["webhooks"]
        assert listed["id"] == webhook_id
        assert webhook_id in run_command(webhook.app, "list", *here)
        run_command(webhook.app, "test", webhook_id, *here)
        assert receiver.received[0].payload["type"] == "webhook.test"
        Verifier(secret).verify(receiver.received[0].body, dict(receiver.received[0].headers))

        def changed() -> bool:
            env.api.post("updateQueue", concurrency=3)
            return any(event["type"] == "queue.updated" for event in receiver.unique_payloads())

        env.eventually(changed)
        listed = run_command(webhook.app, "deliveries", webhook_id, "--json", *here)
        assert '"queue.updated"' in listed
        event = next(receipt.id for receipt in receiver.received if receipt.payload["type"] == "queue.updated")
        run_command(webhook.app, "resend", webhook_id, event, *here)
        assert [receipt.id for receipt in receiver.received].count(event) == 2
        run_command(webhook.app, "update", webhook_id, "--disable", *here)
        assert env.api.post("listWebhooks")["webhooks"][0]["enabled"] is False
        run_command(webhook.app, "delete", webhook_id, *here)
        assert env.api.post("listWebhooks")["webhooks"] == []


def test_private_address_is_refused_unless_the_settings_allow_it(tmp_path: Path):
    here = ["--data-dir", str(tmp_path / "data")]
    run_command(db.app, "migrate", *here)
    refused = CliRunner().invoke(webhook.app, ["create", "https://127.0.0.1/", *here])
    assert refused.exit_code == 1
    assert "not public" in refused.stderr
