"""Runs batched traffic on the real server for a long time, and reports its throughput and resource use.

    python -m tests.soak --minutes 60 --seed 1

It finds the best number of pull requests in progress by itself, unless `--under-way` is given. The seed chooses the
contents of the pull requests; their timing depends on the machine. Exits with 1 when anything is wrong.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.soak.environment import a_soak_environment
from tests.soak.figures import Interval
from tests.soak.load_control import LoadController
from tests.soak.report import format_interval, result_table
from tests.soak.soak import SHOWN_OF_EACH, Soak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under-way", type=int)
    options = parser.parse_args()
    pacing = LoadController(options.under_way, settled=True) if options.under_way else LoadController()
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-soak-"))

    def progress(stretch: Interval) -> None:
        print(format_interval(stretch), flush=True)

    with a_soak_environment(folder, options.seed) as environment:
        figures, wrong = Soak(environment, pacing).run(options.minutes, 60.0, progress)
        Console().print(result_table(figures))
        if wrong:
            print(*wrong[:SHOWN_OF_EACH], sep="\n")
            sys.exit(f"{len(wrong)} checks failed. Logs, data and repositories are in {folder}.")
    print("Every promise was kept, and nothing was left behind.")


if __name__ == "__main__":
    main()
