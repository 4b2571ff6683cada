"""The replica that holds the lease delivers webhooks; after a kill another one continues where it stopped."""

from pathlib import Path
from threading import Event

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.replicas.conftest import Install
from tests.replicas.installation import Installation
from tests.support.api_client import ApiRefused
from tests.support.polling import eventually
from tests.support.webhooks import WebhookReceiver

STEPS = [f"pull_request.{state}" for state in ("submitted", "queued", "testing", "tests_passed", "merged")]


def install_with_key(install: Install, tmp_path: Path) -> Installation:
    """Two replicas with one encryption key, which are allowed to send to this machine."""
    installation, key = install.not_started("all", "all"), tmp_path / "sealing.key"
    key.write_text("5e" * 32)
    for replica in installation.replicas:
        replica.environment["MERGEYARD_SEALING_KEY_FILE"] = str(key)
        replica.environment["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    installation.replicas.start()
    return installation


@pytest.mark.long
def test_another_replica_continues_deliveries_where_the_first_was_killed(install: Install, tmp_path: Path):
    installation, receiver, submitted = install_with_key(install, tmp_path), WebhookReceiver(), Event()
    queue = installation.queue()

    def kill_sender(arrived: int) -> None:
        submitted.wait()
        if arrived == 3:
            installation.replicas.lease_holder().kill()
            raise ConnectionError

    with receiver.serve():
        secret = queue.api.post("createWebhook", url=receiver.url)["secret"]
        receiver.on_arrival = kill_sender
        number = queue.open_pr({"a.txt": "1"})
        queue.submit(number)
        submitted.set()
        queue.wait_for("merged", number)
        eventually(lambda: [event["type"] for event in receiver.unique_payloads()][-1:] == STEPS[-1:])
        assert [event["type"] for event in receiver.unique_payloads()] == STEPS
        for receipt in receiver.received:
            Verifier(secret).verify(receipt.body, dict(receipt.headers))


def test_every_replica_knows_a_new_webhook_and_deletion_of_a_queue_is_delivered(install: Install, tmp_path: Path):
    installation, receiver = install_with_key(install, tmp_path), WebhookReceiver()
    with receiver.serve():
        first = installation.queue()
        first.api.post("createWebhook", url=receiver.url, events=["queue.created", "queue.deleted"])
        second = installation.queue("other")
        eventually(lambda: len(receiver.unique_payloads()) == 1)
        second.api.post("deleteQueue")
        eventually(lambda: len(receiver.unique_payloads()) == 2)
        delivered = [(event["type"], event["data"]["repository"]) for event in receiver.unique_payloads()]
        assert delivered == [("queue.created", "git.local/acme/other"), ("queue.deleted", "git.local/acme/other")]
    installation.queues.remove(second)
    second.api.close()


def test_webhook_is_refused_without_a_shared_key(install: Install):
    queue = install().queue()
    with pytest.raises(ApiRefused, match="sealing_key_file"):
        queue.api.post("createWebhook", url="https://1.1.1.1/hook")
