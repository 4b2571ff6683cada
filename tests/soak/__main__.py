"""Puts batched traffic on the real server for a long time, and says how much it carried and what it cost.

    python -m tests.soak --minutes 60 --seed 1

It finds out by itself how many pull requests must be under way, unless `--under-way` says so. The seed chooses what
pull requests bring; when they come, the machine decides. Exits with 1 when anything is wrong.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.soak.figures import Stretch
from tests.soak.grounds import opened
from tests.soak.pacing import Pacing
from tests.soak.report import line, table
from tests.soak.soak import SHOWN_OF_EACH, Soak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under-way", type=int)
    options = parser.parse_args()
    pacing = Pacing(options.under_way, settled=True) if options.under_way else Pacing()
    folder = Path(tempfile.mkdtemp(prefix="mergeyard-soak-"))

    def progress(stretch: Stretch) -> None:
        print(line(stretch), flush=True)

    with opened(folder, options.seed) as grounds:
        figures, wrong = Soak(grounds, pacing).run(options.minutes, 60.0, progress)
        Console().print(table(figures))
        if wrong:
            print(*wrong[:SHOWN_OF_EACH], sep="\n")
            sys.exit(f"{len(wrong)} things are wrong. Logs, data and repositories are in {folder}.")
    print("Every promise was kept, and nothing was left over.")


if __name__ == "__main__":
    main()
