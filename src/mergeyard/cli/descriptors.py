"""How many files the process may open, and how many of them clients may use up."""

import resource

ENOUGH = 16_384
"""More would gain nothing, and the checks that we start inherit it."""


def for_connections() -> int:
    """The other half is for git, the database and whatever else has to be opened to work."""
    return as_many_as_we_may() // 2


def as_many_as_we_may() -> int:
    """What the system gives at first is often little; up to the hard limit it gives more for the asking."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
