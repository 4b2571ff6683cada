"""Puts what lies loose in a mirror together: objects into packs, a fiftieth of their size, and refs into one file, for
every fetch and push looks at all of them. Nothing is ever thrown away."""

from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository

OBJECTS = ("maintenance", "run", "--auto", "--quiet", "--task=loose-objects", "--task=incremental-repack")
"""Only where there is enough of it. What is packed in one round is removed as loose in the next."""
REFS = ("pack-refs", "--all")


async def tidy(repository: Repository) -> None:
    for loose in (REFS, OBJECTS):
        await repository.ask(*loose, seconds=SECONDS_OVER_THE_NETWORK)
