"""Events reach a real receiver, in order and without a gap, also when the server is killed while it sends."""

from pathlib import Path
from threading import Event

import pytest
from msgspec import json
from standardwebhooks.webhooks import Webhook as Verifier
from typer.testing import CliRunner

from mergeyard.cli import db, webhook
from tests.e2e.conftest import Build
from tests.support.premises import Premises
from tests.support.receiver import Receiver
from tests.support.surroundings import command

STEPS = [f"pull_request.{state}" for state in ("submitted", "queued", "testing", "tests_passed", "merged")]


def prepared(build: Build) -> Premises:
    """Its operator lets events go to this machine."""
    premises = build.without_queue()
    premises.server.stop()
    config = premises.server.config
    config.write_text("allow_private_webhooks = true\n" + config.read_text())
    premises.server.start()
    premises.create_queue()
    return premises


def listen(premises: Premises, receiver: Receiver) -> str:
    """Gives the secret."""
    return premises.api.post("createWebhook", url=receiver.url)["secret"]


def steps_of(receiver: Receiver, number: int) -> list[str]:
    return [event["type"] for event in receiver.once_each() if event["data"]["pr_number"] == number]


@pytest.mark.parametrize("fatal", [1, pytest.param(4, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long)])
def test_killed_while_an_event_is_sent(build: Build, fatal: int):
    premises, receiver, submitted = prepared(build), Receiver(), Event()

    def kill(arrived: int) -> None:
        """The first one is not answered before all are submitted."""
        submitted.wait()
        if arrived == fatal:
            premises.server.kill()
            raise ConnectionError

    with receiver.open():
        secret = listen(premises, receiver)
        receiver.on_arrival = kill
        numbers = [premises.open_pr({f"{name}.txt": "1"}) for name in "ab"]
        premises.submit(*numbers)
        submitted.set()
        premises.eventually(lambda: not premises.server.alive)
        premises.server.start()
        premises.wait_for("merged", *numbers)
        premises.eventually(lambda: all(steps_of(receiver, number)[-1:] == STEPS[-1:] for number in numbers))
        for number in numbers:
            assert steps_of(receiver, number) == STEPS
        for receipt in receiver.receipts:
            Verifier(secret).verify(receipt.body, dict(receipt.headers))


# From the command line


def test_a_webhook_is_managed_beside_the_server(build: Build):
    premises, receiver = prepared(build), Receiver()
    here = ("--config", str(premises.server.config))
    with receiver.open():
        secret = command(webhook.app, "create", "--url", receiver.url, "--event", "queue.updated", *here).strip()
        assert secret.startswith("whsec_")
        webhook_id = premises.api.post("listWebhooks")["webhooks"][0]["id"]
        (listed,) = json.decode(command(webhook.app, "list", "--json", *here))
        assert listed["id"] == webhook_id
        assert webhook_id in command(webhook.app, "list", *here)
        command(webhook.app, "test", webhook_id, *here)
        assert receiver.receipts[0].payload["type"] == "webhook.test"
        Verifier(secret).verify(receiver.receipts[0].body, dict(receiver.receipts[0].headers))

        def changed() -> bool:
            premises.api.post("updateQueue", concurrency=3)
            return any(event["type"] == "queue.updated" for event in receiver.once_each())

        premises.eventually(changed)
        listed = command(webhook.app, "deliveries", webhook_id, "--json", *here)
        assert '"queue.updated"' in listed
        event = next(receipt.id for receipt in receiver.receipts if receipt.payload["type"] == "queue.updated")
        command(webhook.app, "resend", webhook_id, event, *here)
        assert [receipt.id for receipt in receiver.receipts].count(event) == 2
        command(webhook.app, "update", webhook_id, "--disable", *here)
        assert premises.api.post("listWebhooks")["webhooks"][0]["enabled"] is False
        command(webhook.app, "delete", webhook_id, *here)
        assert premises.api.post("listWebhooks")["webhooks"] == []


def test_an_address_of_this_machine_is_refused_unless_the_operator_allows_it(tmp_path: Path):
    here = ["--data-dir", str(tmp_path / "data")]
    command(db.app, "migrate", *here)
    refused = CliRunner().invoke(webhook.app, ["create", "--url", "https://127.0.0.1/", *here])
    assert refused.exit_code == 1
    assert "not public" in refused.stderr
