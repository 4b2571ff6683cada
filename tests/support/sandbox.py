"""Whether bubblewrap works here: tests of the sandbox are skipped where it does not."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mergeyard.adapters.runner_local.process import Sandbox


@cache
def sandbox_problem() -> str | None:
    with TemporaryDirectory() as folder:
        return Sandbox().find_problem(Path(folder))
