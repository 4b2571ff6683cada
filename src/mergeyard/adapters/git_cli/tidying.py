"""Puts together what lies loose in a mirror. Nothing is ever thrown away.

Refs go into one file, for every fetch and push looks at all of them; objects into packs, a fiftieth of their size; and
who descends from whom into a table, or git would walk through the history for every question.
"""

from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository

REFS = ("pack-refs", "--all")
TASKS = ("loose-objects", "incremental-repack", "commit-graph")
OBJECTS = ("maintenance", "run", "--auto", "--quiet", *(f"--task={task}" for task in TASKS))
"""Only where there is enough of it."""


async def tidy(repository: Repository) -> None:
    for loose in (REFS, OBJECTS):
        await repository.ask(*loose, seconds=SECONDS_OVER_THE_NETWORK)
