"""Starts the command line, as `mergeyard` and as `python -m mergeyard`."""

from mergeyard.cli import app


def main() -> None:
    app()


if __name__ == "__main__":
    main()
