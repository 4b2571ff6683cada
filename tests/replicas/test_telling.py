"""Events are told by whoever is on duty, and by another one from where it stopped when that one dies."""

from pathlib import Path
from threading import Event

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.replicas.conftest import Install
from tests.replicas.installation import Installation
from tests.support.api import Refused
from tests.support.patience import eventually
from tests.support.receiver import Receiver

STEPS = [f"pull_request.{state}" for state in ("submitted", "queued", "testing", "tests_passed", "merged")]


def prepared(install: Install, tmp_path: Path) -> Installation:
    """Two replicas with one key, which may send to this machine."""
    installation, key = install.asleep("all", "all"), tmp_path / "sealing.key"
    key.write_text("5e" * 32)
    for replica in installation.replicas:
        replica.surroundings["MERGEYARD_SEALING_KEY_FILE"] = str(key)
        replica.surroundings["MERGEYARD_ALLOW_PRIVATE_WEBHOOKS"] = "true"
    installation.replicas.start()
    return installation


@pytest.mark.long
def test_another_replica_goes_on_telling_where_the_first_one_died(install: Install, tmp_path: Path):
    installation, receiver, submitted = prepared(install, tmp_path), Receiver(), Event()
    queue = installation.queue()

    def kill_whoever_tells(arrived: int) -> None:
        submitted.wait()
        if arrived == 3:
            installation.replicas.on_duty().kill()
            raise ConnectionError

    with receiver.open():
        secret = queue.api.post("createWebhook", url=receiver.url)["secret"]
        receiver.on_arrival = kill_whoever_tells
        number = queue.open_pr({"a.txt": "1"})
        queue.submit(number)
        submitted.set()
        queue.wait_for("merged", number)
        eventually(lambda: [event["type"] for event in receiver.once_each()][-1:] == STEPS[-1:])
        assert [event["type"] for event in receiver.once_each()] == STEPS
        for receipt in receiver.receipts:
            Verifier(secret).verify(receipt.body, dict(receipt.headers))


def test_every_replica_hears_of_a_webhook_and_the_end_of_a_queue_is_told(install: Install, tmp_path: Path):
    installation, receiver = prepared(install, tmp_path), Receiver()
    with receiver.open():
        first = installation.queue()
        first.api.post("createWebhook", url=receiver.url, events=["queue.created", "queue.deleted"])
        second = installation.queue("other")
        eventually(lambda: len(receiver.once_each()) == 1)
        second.api.post("deleteQueue")
        eventually(lambda: len(receiver.once_each()) == 2)
        told = [(event["type"], event["data"]["repository"]) for event in receiver.once_each()]
        assert told == [("queue.created", "git.local/acme/other"), ("queue.deleted", "git.local/acme/other")]
    installation.queues.remove(second)
    second.api.close()


def test_without_a_key_that_all_share_no_webhook_is_made(install: Install):
    queue = install().queue()
    with pytest.raises(Refused, match="sealing_key_file"):
        queue.api.post("createWebhook", url="https://1.1.1.1/hook")
