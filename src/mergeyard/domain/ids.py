"""The names that things are known by, and how a run's public name is drawn from the queue's own counter."""

from hashlib import sha256
from typing import NewType

QueueId = NewType("QueueId", str)
PrNumber = NewType("PrNumber", int)
BatchId = NewType("BatchId", int)
RunId = NewType("RunId", str)
Sha = NewType("Sha", str)

Ticket = NewType("Ticket", int)
"""One stay of a pull request in the queue. Drawn from a counter, so a smaller ticket was submitted earlier."""


def run_id(queue: QueueId, count: int) -> RunId:
    """A UUID (version 8) that is the same whenever the same queue starts its `count`-th run.

    The engine may not roll dice, and a run that is planned again after a crash must get the same name.
    """
    digest = sha256(f"{queue}/{count}".encode()).hexdigest()
    return RunId(f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}")
