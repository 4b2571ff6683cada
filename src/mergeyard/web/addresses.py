"""Where each page is, and what an address names.

A queue is named `host/owner/name:branch`: a branch holds no colon, so whatever else holds one, the last one parts them.
"""

from urllib.parse import quote

from starlette.types import Scope

from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.errors import Code, Refused


def here(scope: Scope) -> str:
    """The address as it was asked for: once decoded, nobody knows any more what had been quoted in it."""
    path, query = scope["raw_path"].decode("ascii"), scope["query_string"].decode("ascii")
    return f"{path}?{query}" if query else path


def queue_name(key: QueueKey) -> str:
    return f"{key.repo}:{key.branch}"


def queue_page(key: QueueKey, page: str = "queues") -> str:
    return f"/{page}/{quote(queue_name(key), safe='/:')}"


def pull_page(key: QueueKey, number: PrNumber) -> str:
    return f"/pulls/{quote(str(key.repo))}/{number}?branch={quote(key.branch, safe='')}"


def act_page(key: QueueKey, number: PrNumber) -> str:
    """Where one chooses what to do with a pull request."""
    return f"/actions?queue={quote(queue_name(key), safe='')}&number={number}"


def stay_page(key: QueueKey, number: PrNumber, ticket: Ticket) -> str:
    """Of one stay, also when a later one followed."""
    return f"{pull_page(key, number)}&stay={ticket}"


def timeline_page(key: QueueKey, number: PrNumber, ticket: Ticket, first: int) -> str:
    """Of a stay, with a long timeline: as far as the first so many entries go."""
    return f"{stay_page(key, number, ticket)}&first={first}#timeline"


def run_page(run: RunId) -> str:
    return f"/runs/{quote(run)}"


def output_page(run: RunId, check: str) -> str:
    return f"{run_page(run)}/output/{quote(check, safe='')}"


def outside(url: str) -> str | None:
    """What others gave as an address, if it leads to a page and nowhere else."""
    return url if url.lower().startswith(("https://", "http://")) and url.isprintable() else None


def repo_named(text: str) -> Repo:
    repo = Repo.parse(text)
    if repo is None:
        raise nothing_here()
    return repo


def queue_named(text: str) -> QueueKey:
    repo, _, branch = text.rpartition(":")
    if not branch:
        raise nothing_here()
    return QueueKey(repo_named(repo), branch)


def nothing_here() -> Refused:
    return Refused(Code.NOT_FOUND, "Nothing is at this address. The queues page lists all that you may see.")
