"""The place where a queue works: its keeper, its host, and the mirror of its repository."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Member
from mergeyard.domain.tokens import Token
from mergeyard.ports.git import Git, Mirror, MissingObject
from mergeyard.ports.host import Host
from mergeyard.service.errors import Code, Refused
from mergeyard.service.naming_branches import branch_ref
from mergeyard.service.turn import Keeper


class Site(Struct, frozen=True, eq=False):
    keeper: Keeper
    host: Host
    mirror: Mirror

    @property
    def repo(self) -> Repo:
        return self.keeper.key.repo

    @property
    def target_ref(self) -> str:
        return branch_ref(self.keeper.key.branch)

    def title_of(self, member: Member) -> str:
        stay = self.keeper.queue.submissions.get(member.ticket)
        return "" if stay is None else stay.pull.title

    def method_of(self, run: RunId | None) -> MergeMethod:
        """The one that it was tested by; without a run, the present one."""
        queue = self.keeper.queue
        tested = None if run is None else queue.runs.get(run)
        return queue.config.merge_method if tested is None else tested.method

    async def tip(self) -> Sha | None:
        """Of the target, as its host shows it now, with all that it holds."""
        return (await self.mirror.fetch([self.target_ref])).get(self.target_ref)

    async def bring(self, number: PrNumber, head: Sha) -> None:
        """What another replica has seen need not be in this one's mirror."""
        if not await self.has(head):
            await self.mirror.fetch([self.host.head_ref(number)])

    async def has(self, commit: Sha) -> bool:
        """Whether the mirror holds it, or somebody must still bring it."""
        try:
            await self.mirror.tree(commit)
        except MissingObject:
            return False
        return True


class Sites:
    def __init__(self, hosts: Mapping[str, Host], git: Git) -> None:
        self.hosts = hosts
        self._git = git

    def host(self, name: str, token: Token | None = None) -> Host:
        """A host where the token has no repository looks to it like one that is not configured."""
        found = self.hosts.get(name)
        if found is None or (token is not None and not token.sees_host(name)):
            raise Refused(Code.HOST_NOT_ALLOWED, f"The host {name[:100]} is not configured: check its name.")
        return found

    def repo(self, named: Repo, token: Token | None = None) -> Repo:
        """The repository as its host calls it, however it was spelled."""
        host = self.host(named.host, token)
        if "/" in named.owner and not host.has_groups:
            raise Refused(Code.INVALID_REPO, f"{host.name} knows no groups within groups: name an owner without a /.")
        return host.same_name(named)

    async def mirror(self, repo: Repo) -> Mirror:
        return await self._git.mirror(str(repo), await self.host(repo.host).remote(repo))

    async def of(self, keeper: Keeper) -> Site:
        repo = keeper.key.repo
        return Site(keeper, self.host(repo.host), await self.mirror(repo))
