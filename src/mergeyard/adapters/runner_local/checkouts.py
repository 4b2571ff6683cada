"""Brings a clean checkout, and tries again when that fails: trouble with git says nothing about the commit."""

import asyncio
from collections.abc import Awaitable, Callable

from mergeyard.adapters.runner_local.workshop import Place, remove
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.runner import Job

Checkout = Callable[[Repo, Sha, str], Awaitable[None]]
"""Writes the files of a commit into an empty folder."""

FIRST_WAIT = 0.1
TRIES = 10
"""With waits that double, these last for almost a minute."""


async def check_out(checkout: Checkout, job: Job, place: Place) -> None:
    for attempt in range(TRIES):
        place.checkout.mkdir()
        try:
            return await checkout(job.repo, job.commit, str(place.checkout))
        except (GitTrouble, OSError):
            if attempt == TRIES - 1:
                raise
        await asyncio.to_thread(remove, place.checkout)
        await asyncio.sleep(FIRST_WAIT * 2**attempt)
    return None
