"""Finds out which queue or repository a request means, and hides from a token what lies outside it."""

from mergeyard.api.endpoint import Call
from mergeyard.api.requests import OfQueue
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.errors import Code, Refused
from mergeyard.service.site import Sites
from mergeyard.service.yard import queue_not_found


class Addressing:
    def __init__(self, sites: Sites) -> None:
        self._sites = sites

    def queue(self, call: Call) -> QueueKey:
        """A queue outside of the token's repositories is one that does not exist."""
        asked: OfQueue = call.request
        key = QueueKey(self.repo(call, asked.key.repo), asked.key.branch)
        if not call.token.sees(key.repo):
            raise queue_not_found(key)
        return key

    def new_queue(self, call: Call) -> QueueKey:
        asked: OfQueue = call.request
        return QueueKey(self.visible_repo(call, asked.key.repo), asked.key.branch)

    def visible_repo(self, call: Call, named: Repo) -> Repo:
        repo = self.repo(call, named)
        if not call.token.sees(repo):
            raise repository_not_found(repo)
        return repo

    def repo(self, call: Call, named: Repo) -> Repo:
        return self._sites.repo(named, call.token)


def repository_not_found(repo: Repo) -> Refused:
    return Refused(Code.REPOSITORY_NOT_FOUND, f"{repo} is not there: check its owner and name.")
