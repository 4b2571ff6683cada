"""Answers for what must be closed before a pull request is merged. All that there is here are pull requests."""

from tests.support.forges.gitea import showing
from tests.support.forges.gitea.calls import Answer, Call, at
from tests.support.forges.gitea.desk_repositories import REPO
from tests.support.forges.gitea.nouns import Blocker
from tests.support.forges.gitea.world import Refusal, pull_of

DEPENDENCIES = f"{REPO}/issues/{{index}}/dependencies"


@at("GET", DEPENDENCIES)
def list_dependencies(call: Call) -> Answer:
    return call.page([showing.issue(each) for each in call.pull.blockers])


@at("POST", DEPENDENCIES)
def add_dependency(call: Call) -> Answer:
    repository = call.world.repository(call.told["owner"], call.told["repo"])
    blocker = Blocker(repository, pull_of(repository, call.told["index"]))
    if not call.world.may(call.repository, call.person, "write"):
        raise Refusal(404, "not found")
    call.pull.blockers.append(blocker)
    return Answer(201, showing.issue(Blocker(call.repository, call.pull)))
