"""Reads what people put on a merge request, and answers with notes and reactions."""

import re

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import merge_request_of, segment
from mergeyard.adapters.forges.gitlab.projects import lack_of, settings_of, trouble_with
from mergeyard.adapters.forges.gitlab.wire import MergeRequest, Note, User, name_of
from mergeyard.adapters.forges.times import instant
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Comment, Thread

A_PAGE = 100
MOST_PAGES = 20
"""What was said two thousand notes ago is of no interest to us."""
QUICK_ACTION = re.compile(r"((?:^|[\r\n])[ \t]*)/")
REACTIONS = {True: "rocket", False: "confused"}


async def read_thread(caller: Caller, repo: Repo, number: PrNumber, since: Instant) -> Thread:
    place = merge_request_of(repo, number)
    shown = await caller.get(place, MergeRequest)
    notes = await _notes(caller, place, since)
    if shown is None or notes is None:
        raise await lack_of(caller, repo, f"merge request {number}")
    said = sorted((note for note in notes if not note.system), key=lambda note: (note.created_at, note.id))
    return Thread(frozenset(shown.labels), tuple(map(_comment, said)))


async def say(caller: Caller, repo: Repo, number: PrNumber, text: str, comment: str | None, us: User) -> str:
    place = merge_request_of(repo, number)
    if comment is not None and await _rewritten(caller, place, comment, text):
        return comment
    said = await _said_before(caller, place, text, us)
    if said is not None and await _rewritten(caller, place, said, text):
        return said
    reply = await caller.send("POST", f"{place}/notes", {"body": harmless(text)})
    if not reply.fine:
        raise await trouble_with(caller, repo, reply)
    return str(reply.read(Note).id)


async def react(caller: Caller, repo: Repo, number: PrNumber, comment: str, *, fine: bool) -> None:
    place = f"{merge_request_of(repo, number)}/notes/{segment(comment)}/award_emoji"
    reply = await caller.send("POST", place, {"name": REACTIONS[fine]})
    # GitLab says 404 when the note is gone, and also when the reaction is there already.
    reply.well_received(also=(404,))


async def unlabel(caller: Caller, repo: Repo, number: PrNumber, label: str) -> None:
    reply = await caller.send("PUT", merge_request_of(repo, number), {"remove_labels": label})
    if reply.status == 404:
        await settings_of(caller, repo)
    else:
        reply.well_received()


def harmless(text: str) -> str:
    """GitLab obeys lines like `/merge` or `/close`, also those that we only quote: with our rights."""
    return QUICK_ACTION.sub(r"\1\\/", text)


async def _rewritten(caller: Caller, place: str, comment: str, text: str) -> bool:
    """False: it is gone."""
    reply = await caller.send("PUT", f"{place}/notes/{segment(comment)}", {"body": harmless(text)})
    return reply.well_received(also=(404,)).fine


async def _said_before(caller: Caller, place: str, text: str, us: User) -> str | None:
    mark = text.partition("\n")[0]
    for note in await _notes(caller, place, Instant(0)) or ():
        if note.author and note.author.id == us.id and note.body.partition("\n")[0].rstrip() == mark:
            return str(note.id)
    return None


async def _notes(caller: Caller, place: str, since: Instant) -> list[Note] | None:
    """The latest first: what is older than the last one wanted is not asked for. None: all of it is gone."""
    found = list[Note]()
    for page in range(1, MOST_PAGES + 1):
        query = {"order_by": "created_at", "sort": "desc", "per_page": A_PAGE, "page": page}
        notes = await caller.get(f"{place}/notes", list[Note], query)
        if notes is None:
            return None
        found += notes
        if len(notes) < A_PAGE or instant(notes[-1].created_at) < since:
            return found
    return found


def _comment(note: Note) -> Comment:
    return Comment(id=str(note.id), author=name_of(note.author), text=note.body, at=instant(note.created_at))
