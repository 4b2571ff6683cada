"""Says in words what is wrong with the database, and what a person can do about it."""

from collections.abc import Generator
from contextlib import contextmanager

from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.ports.store import StoreTrouble

ADVICE: dict[type[Exception], str] = {
    e.InvalidAuthorizationSpecificationError: "{place} does not let us in. Check user and password",
    e.InvalidCatalogNameError: "{place} is not there. Create it, or name another one",
    e.InsufficientPrivilegeError: "{place} does not let us make and use our tables. Make our user the owner of it",
    e.UndefinedObjectError: "{place} does not know a setting that is asked for. Remove it from the URL",
    e.CantChangeRuntimeParamError: "{place} does not let us change a setting. Remove it from the URL",
    e.ReadOnlySQLTransactionError: "{place} is a copy that may only be read. Name the server that may be written to",
    e.TooManyConnectionsError: "{place} has no connection to spare. Raise its max_connections, or run fewer replicas",
    e.ObjectNotInPrerequisiteStateError: "{place} accepts no connections. Allow them again; nothing needs a restart",
    e.DiskFullError: "The disk of the database is full ({place}). Make room; nothing needs to be restarted",
    e.InsufficientResourcesError: "{place} lacks memory or the like. Give its server more",
    e.CannotConnectNowError: "{place} is starting or stopping. Wait until it is up; nothing needs to be restarted",
    e.QueryCanceledError: "{place} took too long. Look for what keeps its server busy",
    e.OperatorInterventionError: "{place} was stopped. Start it again; nothing needs to be restarted here",
    e.IdleInTransactionSessionTimeoutError: "{place} gave up waiting for us. Look for what keeps this process busy",
    e.PostgresConnectionError: "The connection was lost ({place}). Check that its server is up and can be reached",
    e.PostgresSystemError: "The disk of the database cannot be read or written ({place}). Check disk and server log",
    e.DataCorruptedError: "{place} is damaged. Stop Mergeyard and restore a backup",
    e.IndexCorruptedError: "{place} is damaged. Stop Mergeyard and restore a backup",
    TimeoutError: "{place} does not answer. Check that its server is up and not overloaded",
    OSError: "{place} cannot be reached. Check host and port, and that its server is up",
    e.ClientConfigurationError: "{place} cannot be asked for like this. Check the URL of the database",
    e.InternalClientError: "The connection was lost ({place}). Check that its server is up and can be reached",
    e.InterfaceError: "The connection was lost ({place}). Check that its server is up and can be reached",
}
"""The first that fits counts. Whatever else PostgreSQL raises is a mistake of ours and stays what it is."""

UNSPEAKABLE = (e.ClientConfigurationError,)
"""What it says may hold a part of the URL."""


@contextmanager
def told_in_words(place: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        if (trouble := in_words(error, place)) is None:
            raise
        raise trouble from None if isinstance(error, UNSPEAKABLE) else error


def in_words(error: Exception, place: str) -> StoreTrouble | None:
    """None for what is no trouble of the database."""
    advice = next((words for kind, words in ADVICE.items() if isinstance(error, kind)), None)
    if advice is None or _is_a_value_that_fits_nowhere(error):
        return None
    said = "" if isinstance(error, UNSPEAKABLE) else " ".join(str(error).split())
    return StoreTrouble(f"{advice.format(place=place)} ({said})." if said else f"{advice.format(place=place)}.")


def _is_a_value_that_fits_nowhere(error: Exception) -> bool:
    """Of the errors that the driver raises by itself, that is the one which is a mistake of ours."""
    return isinstance(error, e.InterfaceError) and isinstance(error, ValueError) and not isinstance(error, UNSPEAKABLE)


def not_open(place: str) -> StoreTrouble:
    return StoreTrouble(f"{place} is not open. Open the store before it is used, and close it last.")
