"""Starts the command line, as `mergeyard` and as `python -m mergeyard`."""

import sys

from mergeyard.cli import app
from mergeyard.cli.exits import Ends


def main() -> None:
    """What nobody foresaw ends with a code of its own, lest it looks like a pull request that failed."""
    try:
        app()
    except Exception as unforeseen:
        sys.excepthook(type(unforeseen), unforeseen, unforeseen.__traceback__)
        sys.exit(Ends.UNFORESEEN)


if __name__ == "__main__":
    main()
