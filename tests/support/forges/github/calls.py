"""One API request, the kinds of responses, and reads of rules and of what they require."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.github import payloads
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.rulesets import DEFAULT_BRANCH, Organization, Ruleset
from tests.support.forges.github.world import Authentication, Caller, Comment, Deployment, PullRequest

MAX_PAGE_SIZE = 100
MAX_LISTED_COMMITS = 250
T = TypeVar("T")


class ApiError(Exception):
    """An error response."""

    def __init__(
        self,
        status: int,
        message: str = "Not Found",
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`errors` are the details of a request that is not valid."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = headers or {}


class Call(Struct, frozen=True, kw_only=True):
    caller: Caller
    auth: Authentication
    repositories: Mapping[str, FakeRepository]
    path_params: Mapping[str, str]
    """Path parameters by name."""
    query: Mapping[str, str]
    body: Any

    @property
    def repository(self) -> FakeRepository:
        """Case is ignored; a repository that the caller cannot see counts as missing."""
        name = f"{self.path_params['owner']}/{self.path_params['repo']}".lower()
        repository = self.repositories.get(name)
        if repository is None or not (self.caller.is_app or self.caller.can_see(name)):
            raise ApiError(404)
        return repository

    @property
    def organization(self) -> Organization:
        """By login or by ID, of the repositories that the caller can see."""
        wanted, visible = self.path_params["org"], [name for name in self.repositories if self.caller.can_see(name)]
        found = {self.repositories[name].organization for name in visible}
        owner = next((one for one in found if wanted.lower() in (one.login.lower(), str(one.id))), None)
        if owner is None:
            raise ApiError(404)
        return owner

    @property
    def deployment(self) -> Deployment:
        return self._find({one.id: one for one in self.repository.deployments}, int(self.path_params["deployment"]))

    @property
    def pull_request(self) -> PullRequest:
        return self._find(self.repository.pull_requests, int(self.path_params["number"]))

    @property
    def comment(self) -> Comment:
        return self._find(self.repository.comments, int(self.path_params["comment"]))

    @property
    def tip(self) -> Sha:
        found = self.repository.origin.ref(self.path_params["branch"])
        if found is None:
            raise ApiError(404, "Branch not found")
        return found

    def page(self, items: Sequence[T]) -> list[T]:
        size = min(int(self.query.get("per_page", "30")), MAX_PAGE_SIZE)
        first = (int(self.query.get("page", "1")) - 1) * size
        return list(items[first : first + size])

    def _find(self, items: Mapping[int, T], number: int) -> T:
        if number not in items:
            raise ApiError(404)
        return items[number]


class Page(Struct, frozen=True):
    """One page of a list, with the total length."""

    items: list[Any]
    total: int


class Created(Struct, frozen=True):
    content: Any


class NoContent(Struct, frozen=True):
    """A success without a body."""


Handler = Callable[[Call], Any]


def list_files(call: Call) -> Page:
    items = call.repository.changed_files(call.pull_request)
    return Page([payloads.changed_file(*each) for each in call.page(items)], len(items))


def list_commits(call: Call) -> Page:
    items = call.repository.list_commits(call.pull_request)[:MAX_LISTED_COMMITS]
    return Page([payloads.commit(call.repository, sha) for sha in call.page(items)], len(items))


def list_history(call: Call) -> Page:
    """The commits that a branch contains, newest first. Without a branch, those of the default branch."""
    tip = call.repository.origin.ref(call.query.get("sha", DEFAULT_BRANCH))
    if tip is None:
        raise ApiError(404)
    items = call.repository.origin.run("rev-list", tip).decode().split()
    return Page([payloads.commit(call.repository, sha) for sha in call.page(items)], len(items))


def list_ssh_signing_keys(call: Call) -> Page:
    items = call.auth.ssh_signing_keys.get(call.path_params["login"], [])
    return Page([payloads.ssh_signing_key(line) for line in call.page(items)], len(items))


def list_gpg_keys(call: Call) -> Page:
    items = list(call.auth.gpg_keys.get(call.path_params["login"], {}).items())
    return Page([payloads.gpg_key(*each) for each in call.page(items)], len(items))


def list_activities(call: Call) -> Any:
    """The newest first, without further pages. The parameter is a branch or a full ref."""
    wanted = call.query.get("ref", "")
    refs = (wanted, f"refs/heads/{wanted}")
    found = [one for one in reversed(call.repository.activities) if not wanted or one.ref in refs]
    return [payloads.activity(each) for each in call.page(found)]


def list_deployments(call: Call) -> Page:
    wanted = {name: call.query[name] for name in ("sha", "environment") if name in call.query}
    found = [
        one
        for one in reversed(call.repository.deployments)
        if all(getattr(one, name) == value for name, value in wanted.items())
    ]
    return Page([payloads.deployment(each) for each in call.page(found)], len(found))


def list_deployment_statuses(call: Call) -> Page:
    states = list(reversed(call.deployment.states))
    return Page([payloads.deployment_status(call.deployment, state) for state in call.page(states)], len(states))


def list_teams(call: Call) -> Page:
    items = sorted(find_organization_for_teams(call).teams.values(), key=lambda team: team.slug)
    return Page([payloads.team(each) for each in call.page(items)], len(items))


def find_organization_for_teams(call: Call) -> Organization:
    if not call.caller.can_resolve_teams:
        raise ApiError(404)
    return call.organization


def list_team_members(call: Call) -> Page:
    """By the slug of the team. GitHub does not describe the form with ids, but answers it on a test's demand."""
    organization = find_organization_for_teams(call)
    if "slug" in call.path_params:
        team = organization.teams.get(call.path_params["slug"])
    else:
        team = organization.find_team(int(call.path_params["team"])) if organization.answers_team_ids else None
    if team is None:
        raise ApiError(404)
    members = sorted(team.members)
    return Page([payloads.member(login) for login in call.page(members)], len(members))


def get_team_membership(call: Call) -> Any:
    found = payloads.membership(find_organization_for_teams(call), call.path_params["slug"], call.path_params["person"])
    if found is None:
        raise ApiError(404)
    return found


def list_rules(call: Call) -> Page:
    items = payloads.rules(call.repository, call.path_params["branch"])
    return Page(call.page(items), len(items))


def list_rulesets(call: Call) -> Page:
    repository, with_parents = call.repository, call.query.get("includes_parents", "true") == "true"
    found = [one for one in repository.all_rulesets if with_parents or one.source_type == "Repository"]
    items = [payloads.ruleset(repository, one, call.caller, with_rules=False) for one in call.page(found)]
    return Page(items, len(found))


def get_ruleset(call: Call) -> Any:
    return payloads.ruleset(call.repository, find_ruleset(call), call.caller)


def find_ruleset(call: Call) -> Ruleset:
    wanted = int(call.path_params["ruleset"])
    found = next((one for one in call.repository.all_rulesets if one.id == wanted), None)
    if found is None:
        raise ApiError(404)
    return found


def get_protection(call: Call) -> Any:
    """GitHub hides it from users who do not administer the repository."""
    repository, login = call.repository, call.caller.login
    guard = repository.protections.get(call.path_params["branch"])
    if repository.only_admins_read_protection and call.caller.app_id is None and repository.roles.get(login) != "admin":
        raise ApiError(404)
    if guard is None:
        raise ApiError(404, "Branch not protected")
    return payloads.protection(guard)


def list_reviews(call: Call) -> Page:
    items = call.pull_request.reviews
    return Page([payloads.review(each) for each in call.page(items)], len(items))


def get_branch(call: Call) -> Any:
    """A former name is redirected, as the API description has it."""
    present = call.repository.renamed_branches.get(call.path_params["branch"])
    if present is not None:
        location = f"/api/v3/repositories/{call.repository.id}/branches/{quote(present, safe='')}"
        raise ApiError(301, "Moved Permanently", headers={"location": location})
    return payloads.branch(call.repository, call.path_params["branch"], call.tip)
