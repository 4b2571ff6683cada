"""Everything that a Gitea holds, and who may do what with it."""

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count
from threading import RLock
from uuid import uuid4

from mergeyard.domain.instants import SECOND
from mergeyard.ports.clock import Clock
from tests.support.forges.git_rooms import GitRooms, Visit
from tests.support.forges.gitea.nouns import Account, Comment, Pull, Repository, Rule, Token

ROLES = ("none", "read", "write", "admin", "owner")
TOKEN_AS_USER = "x-oauth-basic"


class Refusal(Exception):
    """Why a request is not carried out."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class World:
    def __init__(self, clock: Clock) -> None:
        self.url = ""
        self._clock = clock
        self.lock = RLock()
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, Repository] = {}
        self.rooms: GitRooms
        self._ids = count(1)

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> datetime:
        """Whole seconds: it counts no others."""
        return datetime.fromtimestamp(self._clock.now() // SECOND, UTC)

    def account(self, login: str) -> Account:
        found = self.accounts.get(login.lower())
        if found is None:
            raise Refusal(404, f"user does not exist [name: {login}]")
        return found

    def make_account(self, login: str, password: str, *, site_admin: bool = False) -> Account:
        account = self.accounts[login.lower()] = Account(self.next_id(), login, password, site_admin)
        return account

    def make_token(self, account: Account, *scopes: str) -> str:
        secret = uuid4().hex + "0" * 8
        self.tokens[secret] = Token(account, frozenset(scopes))
        return secret

    def repository(self, owner: str, name: str) -> Repository:
        found = self.repositories.get(f"{owner}/{name}".lower())
        if found is None:
            raise Refusal(404, "not found")
        return found

    def role(self, repository: Repository, account: Account) -> str:
        """All repositories here are public."""
        if account is repository.owner:
            return "owner"
        return "admin" if account.site_admin else repository.roles.get(account.login, "read")

    def may(self, repository: Repository, account: Account, least: str) -> bool:
        return ROLES.index(self.role(repository, account)) >= ROLES.index(least)

    def comes_in(self, visit: Visit) -> bool:
        """With git: a token stands for its name or for its password."""
        token = self.tokens.get(visit.user if visit.password == TOKEN_AS_USER else visit.password)
        if token is None or not token.scopes & {"all", "write:repository"}:
            return False
        repository = self.repositories[visit.repository.lower()]
        return not visit.writes or self.may(repository, token.account, "write")


def pull_of(repository: Repository, number: str) -> Pull:
    found = repository.pulls.get(int(number))
    if found is None:
        raise Refusal(404, "not found")
    return found


def comment_of(repository: Repository, identity: str) -> tuple[Pull, Comment]:
    for pull in repository.pulls.values():
        for comment in pull.comments:
            if comment.id == int(identity):
                return pull, comment
    raise Refusal(404, "comment does not exist")


def rule_of(repository: Repository, branch: str) -> Rule | None:
    """The first that fits, and exact names come first."""
    fitting = [rule for rule in repository.rules if fnmatchcase(branch, rule.rule_name)]
    return min(fitting, key=lambda rule: rule.rule_name != branch, default=None)
