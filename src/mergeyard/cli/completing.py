"""Completes the names of queues in a shell, if the server tells them at once; else it completes nothing."""

import os
from collections.abc import Iterable

from mergeyard.client import Client, MergeyardError, Patience, QueueName, Unreachable

AT_ONCE = Patience(altogether=0, one_answer=1)


def repositories(incomplete: str) -> list[str]:
    return beginning_with(incomplete, (str(queue.repo) for queue in queues()))


def branches(incomplete: str) -> list[str]:
    return beginning_with(incomplete, (queue.branch for queue in queues()))


def queues() -> list[QueueName]:
    url, token = os.environ.get("MERGEYARD_URL", ""), os.environ.get("MERGEYARD_TOKEN", "")
    try:
        with Client(url, token, patience=AT_ONCE) as client:
            return [queue.named for queue in client.list_queues().queues]
    except (ImportError, ValueError, MergeyardError, Unreachable):
        return []


def beginning_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
