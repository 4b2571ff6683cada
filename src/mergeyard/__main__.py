"""Entry point of `mergeyard` and `python -m mergeyard`."""

import sys

from mergeyard.cli import app
from mergeyard.cli.output import ExitCode


def main() -> None:
    """An unexpected exception has its own exit code, so that scripts do not take it for a failed pull request."""
    try:
        app()
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(ExitCode.INTERNAL_ERROR)


if __name__ == "__main__":
    main()
