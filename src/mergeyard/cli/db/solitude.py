"""Makes sure that no server works in a data directory, and that none starts meanwhile."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mergeyard.cli.db.refusing import Refused, told_of
from mergeyard.cli.occupying import Occupied, alone_in


@contextmanager
def no_server_in(folder: Path) -> Generator[None]:
    with ExitStack() as held:
        try:
            with told_of(folder):
                held.enter_context(alone_in(folder))
        except Occupied:
            raise Refused(f"A server works in {folder}: stop it first, and start it again afterwards.") from None
        yield
