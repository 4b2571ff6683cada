"""Reads what people put on a pull request, and speaks to them there."""

from urllib.parse import quote

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.times import instant, written
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Comment, Thread
from mergeyard.ports.host import HostTrouble

GONE = (404, 410)


async def thread(caller: Caller, repo: Repo, number: PrNumber, since: Instant) -> Thread:
    """The labels are on its page, which whoever wants to hear the thread has just read: that costs nothing."""
    pull = await caller.get(f"{place(repo)}/pulls/{number}", wire.Pull)
    if pull is None:
        raise HostTrouble(f"we see no pull request {number} in {repo}")
    query = {"since": written(since), "per_page": 100}
    comments = await caller.every(f"{place(repo)}/issues/{number}/comments", list[wire.Comment], query)
    return Thread(frozenset(label.name for label in pull.labels), tuple(_comment(comment) for comment in comments))


async def say_again(caller: Caller, repo: Repo, comment: str, text: str) -> str | None:
    """Changes our comment; None where it is gone."""
    reply = await caller.send("PATCH", f"{place(repo)}/issues/comments/{segment(comment)}", {"body": text})
    return comment if reply.well_received(also=GONE).fine else None


async def say_first(caller: Caller, repo: Repo, number: PrNumber, text: str) -> str:
    reply = await caller.send("POST", f"{place(repo)}/issues/{number}/comments", {"body": text})
    return str(reply.well_received().read(wire.Comment).id)


async def said_already(caller: Caller, repo: Repo, number: PrNumber, text: str, name: str) -> str | None:
    """The comment under our name that begins like this one: the reply to it may have been lost."""
    path = f"{place(repo)}/issues/{number}/comments"
    marker = text.partition("\n")[0]
    for comment in await caller.every(path, list[wire.Comment], {"per_page": 100}):
        if comment.user == wire.User(name) and comment.body.startswith(marker):
            return str(comment.id)
    return None


async def react(caller: Caller, repo: Repo, comment: str, content: str) -> None:
    path = f"{place(repo)}/issues/comments/{segment(comment)}/reactions"
    reply = await caller.send("POST", path, {"content": content})
    reply.well_received(also=GONE)


async def unlabel(caller: Caller, repo: Repo, number: PrNumber, label: str) -> None:
    reply = await caller.send("DELETE", f"{place(repo)}/issues/{number}/labels/{quote(label, safe='')}")
    reply.well_received(also=GONE)


def _comment(comment: wire.Comment) -> Comment:
    author = comment.user.login if comment.user else ""
    return Comment(id=str(comment.id), author=author, text=comment.body, at=instant(comment.created_at))
