"""A place where repositories and their pull requests live."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Forge
from mergeyard.ports.git import Remote


class HostTrouble(Exception):
    """The host does not answer, or not in a way that we understand: try again later."""


class HostRefused(HostTrouble):
    """The host will not do this, and asking again changes nothing. The host itself is well."""


class Unreadable(HostTrouble):
    """What the host says about this one pull request makes no sense. The host itself is well."""


class ChecksFrom(StrEnum):
    API = "api"
    """CI reports statuses to us."""
    RUN = "run"
    """We run the checks ourselves."""
    HOST = "host"
    """The host knows them."""


class Host(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str:
        """What kind of host it is: `git`, `github`, `gitlab`, `gitea`."""
        ...

    @property
    def has_groups(self) -> bool:
        """Whether an owner may be a group within groups: `acme/tools`."""
        ...

    @property
    def checks_from(self) -> ChecksFrom: ...

    @property
    def forge(self) -> Forge | None:
        """What it can do beyond keeping repositories, if it can."""
        ...

    @property
    def look_every(self) -> int:
        """How many milliseconds may pass between two readings of a repository that nobody has news of."""
        ...

    def refuses(self, method: MergeMethod, landing: LandingMethod) -> str | None:
        """Why pull requests cannot be merged in this way here, and what to do instead; None: they can."""
        ...

    @property
    def judges_mergeability(self) -> bool:
        """Whether the host itself says if a pull request can be merged. Of whom it does not, git is asked."""
        ...

    def same_name(self, repo: Repo) -> Repo:
        """The one spelling of a repository's name, where the host knows several for it."""
        ...

    async def remote(self, repo: Repo) -> Remote:
        """With credentials that are good for some minutes."""
        ...

    def head_ref(self, number: PrNumber) -> str:
        """The ref under which git finds a pull request's head, e.g. `refs/pull/12/head`."""
        ...

    @property
    def every_head_ref(self) -> str:
        """The pattern that finds all of them, e.g. `refs/pull/*/head`."""
        ...

    def pull_page(self, repo: Repo, number: PrNumber) -> str | None:
        """The address of its page, where the host has pages."""
        ...

    async def knows(self, repo: Repo) -> bool: ...

    async def pull(self, repo: Repo, number: PrNumber) -> PullRequest | None:
        """As the host shows it now. What only git can tell (`contained`, `contains`) is left out, and so is
        the mergeability where the host has no opinion of its own."""
        ...

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        """What protects the branch, as the host knows it."""
        ...

    async def refs(self, repo: Repo, branches: Collection[str]) -> Mapping[str, Sha]:
        """These branches, as far as they are there, and all that changes when a pull request does: two readings
        differ where something happened. Others may be among them."""
        ...

    def number_of(self, ref: str) -> PrNumber | None:
        """Which pull request a ref of `refs` belongs to."""
        ...

    async def mark_merged(self, repo: Repo, number: PrNumber, head: Sha, commit: Sha) -> None:
        """Show it as merged, if the host does not see that by itself; harmless when it is shown so already."""
        ...

    async def close(self) -> None: ...
