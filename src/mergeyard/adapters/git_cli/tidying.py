"""Puts what lies loose in a mirror into packs, a fiftieth of its size. Nothing is ever thrown away."""

from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository

ARGUMENTS = ("--auto", "--quiet", "--task=loose-objects", "--task=incremental-repack")
"""Only where there is enough of it. What is packed in one round is removed as loose in the next."""


async def tidy(repository: Repository) -> None:
    await repository.ask("maintenance", "run", *ARGUMENTS, seconds=SECONDS_OVER_THE_NETWORK)
