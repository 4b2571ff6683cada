"""Hears what people put on a pull request, and answers them there."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import place_of, place_of_talk, segment
from mergeyard.adapters.forges.gitea.repositories import must_be_there
from mergeyard.adapters.forges.gitea.wire import Comment, Label, Made, Role, User
from mergeyard.adapters.forges.times import instant, written
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports import forge
from mergeyard.ports.forge import Thread
from mergeyard.ports.host import HostTrouble

MAINTAINERS = ("admin", "owner")
WRITERS = ("write", *MAINTAINERS)
MISSING = 404


class Talking:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._name: str | None = None

    async def thread(self, repo: Repo, number: PrNumber, since: Instant) -> Thread:
        labels = await self._labels(repo, number)
        said = await self._comments(repo, number, {"since": written(since)})
        return Thread(frozenset(label.name for label in labels), tuple(map(_as_heard, said)))

    async def may_write(self, repo: Repo, person: str) -> bool:
        return await self._role(repo, person) in WRITERS

    async def may_maintain(self, repo: Repo, person: str) -> bool:
        return await self._role(repo, person) in MAINTAINERS

    async def say(self, repo: Repo, number: PrNumber, text: str, comment: str | None) -> str:
        known = comment or await self._said_before(repo, number, text)
        if known is not None:
            reply = await self._caller.send("PATCH", _place_of_comment(repo, known), {"body": text})
            if reply.status != MISSING:
                return str(reply.well_received().read(Made).id)
        reply = await self._caller.send("POST", f"{place_of_talk(repo, number)}/comments", {"body": text})
        return str(reply.well_received().read(Made).id)

    async def react(self, repo: Repo, comment: str, reaction: str) -> None:
        reply = await self._caller.send("POST", f"{_place_of_comment(repo, comment)}/reactions", {"content": reaction})
        reply.well_received(also=(MISSING,))

    async def unlabel(self, repo: Repo, number: PrNumber, name: str) -> None:
        for label in await self._labels(repo, number):
            if label.name == name:
                reply = await self._caller.send("DELETE", f"{place_of_talk(repo, number)}/labels/{label.id}")
                reply.well_received(also=(MISSING,))

    async def our_name(self) -> str:
        if self._name is None:
            user = await self._caller.get("/user", User)
            if user is None:
                raise HostTrouble("it does not tell who we are")
            self._name = user.login
        return self._name

    async def _role(self, repo: Repo, person: str) -> str | None:
        if not person:
            return None
        role = await self._caller.get(f"{place_of(repo)}/collaborators/{segment(person)}/permission", Role)
        return role and role.permission

    async def _said_before(self, repo: Repo, number: PrNumber, text: str) -> str | None:
        """Ours that begins alike: its id was lost with the answer."""
        us, mark = await self.our_name(), _first_line(text)
        for said in await self._comments(repo, number, {}):
            if said.user and said.user.login == us and _first_line(said.body) == mark:
                return str(said.id)
        return None

    async def _labels(self, repo: Repo, number: PrNumber) -> list[Label]:
        labels = await self._caller.every(f"{place_of_talk(repo, number)}/labels", list[Label])
        if not labels:
            await must_be_there(self._caller, repo)
        return labels

    async def _comments(self, repo: Repo, number: PrNumber, query: dict[str, str]) -> list[Comment]:
        said = await self._caller.every(f"{place_of_talk(repo, number)}/comments", list[Comment], query)
        return sorted(said, key=lambda each: (each.created_at, each.id))


def _place_of_comment(repo: Repo, comment: str) -> str:
    return f"{place_of(repo)}/issues/comments/{segment(comment)}"


def _as_heard(said: Comment) -> forge.Comment:
    author = said.user.login if said.user else ""
    return forge.Comment(id=str(said.id), author=author, text=said.body, at=instant(said.created_at))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()
