"""Says in words why something is not done, and what a person can do next."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.ports.archive import FORM


class Refused(Exception):
    """Nothing was changed."""


ADVICE = {
    errno.ENOENT: "{path} is not there: check the path, and that its folder exists",
    errno.ENOTDIR: "{path} is not there: check the path, and that its folder exists",
    errno.EISDIR: "{path} is a folder: name a file in it",
    errno.EACCES: "{path} may not be used: check who owns it and its folder",
    errno.EPERM: "{path} may not be used: check who owns it and its folder",
    errno.EROFS: "{path} lies on a disk that may only be read: name a file elsewhere",
    errno.ENOSPC: "The disk that holds {path} is full: make room, or name a file elsewhere",
    errno.EDQUOT: "The disk that holds {path} is full for you: make room, or name a file elsewhere",
    errno.EFBIG: "{path} would become larger than its disk allows: name a file elsewhere",
}


@contextmanager
def told_of(path: Path) -> Generator[None]:
    """Whatever the system refuses in here is about this file, unless a connection was lost."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "{path} cannot be used: check its disk and the system's log")
        raise Refused(f"{advice.format(path=path)} ({error.strerror}).") from error


def refuse_another_form(form: int, place: str) -> None:
    if form == 0:
        raise Refused(
            f"{place} holds nothing of Mergeyard yet. Name another database with --data-dir or --database-url, "
            "or make this one with `mergeyard db migrate`."
        )
    if form < FORM:
        raise Refused(f"{place} has the older form {form}, not {FORM}. Run `mergeyard db migrate` first.")
    if form > FORM:
        raise Refused(
            f"{place} was written by a newer version of Mergeyard (its form is {form}, this version knows {FORM}). "
            "Use that version."
        )
