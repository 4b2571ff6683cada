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
    """The same whenever the same queue starts its `count`-th run.

    The engine may not roll dice, and a run that is planned again after a crash must get the same name.
    """
    return RunId(_uuid(f"{queue}/{count}"))


def stay_id(queue: QueueId, ticket: Ticket) -> str:
    """The name of one stay, for people and their programs."""
    return _uuid(f"{queue}/stay/{ticket}")


def _uuid(name: str) -> str:
    """Version 8: made by our own rule."""
    digest = sha256(name.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"
