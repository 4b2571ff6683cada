"""Answers for pull requests, their reviews and merges, and for statuses of commits."""

from mergeyard.domain.ids import Sha
from tests.support.forges.gitea import showing
from tests.support.forges.gitea.calls import Answer, Call, at
from tests.support.forges.gitea.desk_repositories import REPO
from tests.support.forges.gitea.judging import check_is_ready, check_may_merge, latest_statuses
from tests.support.forges.gitea.nouns import Pull, Repository, Review, Status
from tests.support.forges.gitea.world import Refusal

PULL = f"{REPO}/pulls/{{index}}"
EVENTS = {"APPROVED": "pull_request_review_approved", "REQUEST_CHANGES": "pull_request_review_rejected"}


@at("GET", f"{REPO}/pulls")
def list_pulls(call: Call) -> Answer:
    repository, state = call.repository, call.query.get("state", "open")
    found = [pull for pull in repository.pulls.values() if state in ("all", pull.state)]
    updated = call.query.get("sort") == "recentupdate"
    found.sort(key=lambda pull: (pull.updated if updated else pull.created, pull.number), reverse=True)
    return call.page([call.showing.pull(repository, pull, call.person) for pull in found])


@at("POST", f"{REPO}/pulls")
def open_pull(call: Call) -> Answer:
    pull = call.acts.open(call.repository, call.person, call.told)
    return Answer(201, call.showing.pull(call.repository, pull, call.person))


@at("GET", PULL)
def read_pull(call: Call) -> Answer:
    return Answer(200, call.showing.pull(call.repository, call.pull, call.person))


@at("PATCH", PULL)
def change_pull(call: Call) -> Answer:
    pull = call.pull
    for name in ("title", "state", "base"):
        setattr(pull, name, call.told.get(name, getattr(pull, name)))
    action = {"closed": "closed", "open": "reopened"}.get(call.told.get("state", ""), "edited")
    call.acts.touch(call.repository, pull, call.person, "pull_request", action)
    return Answer(201, call.showing.pull(call.repository, pull, call.person))


@at("POST", f"{PULL}/merge")
def merge(call: Call) -> Answer:
    repository, pull, told = call.repository, call.pull, call.told
    check_may_merge(call.world, repository, pull, call.person)
    if told["Do"] == "manually-merged":
        call.acts.mark(repository, pull, call.person, told.get("MergeCommitID", ""))
        return Answer(200)
    check_is_ready(repository, pull)
    if told.get("head_commit_id", pull.head) != pull.head:
        raise Refusal(409, "head out of date")
    words = "\n\n".join(part for part in (told["MergeTitleField"], told.get("MergeMessageField")) if part)
    call.acts.merge(repository, pull, call.person, told["Do"], words)
    return Answer(200)


@at("GET", f"{PULL}/reviews")
def list_reviews(call: Call) -> Answer:
    return call.page([showing.review(each, call.pull) for each in call.pull.reviews])


@at("POST", f"{PULL}/reviews")
def add_review(call: Call) -> Answer:
    """A later one of the same person takes the place of the earlier."""
    repository, pull, state = call.repository, call.pull, call.told["event"]
    for earlier in pull.reviews:
        earlier.official = earlier.official and earlier.author is not call.person
    official = call.world.may(repository, call.person, "write")
    made = Review(call.world.next_id(), call.person, state, call.told["body"], pull.head, official)
    pull.reviews.append(made)
    call.acts.touch(repository, pull, call.person, EVENTS.get(state, "pull_request_review_comment"), "reviewed")
    return Answer(200, showing.review(made, pull))


@at("GET", f"{REPO}/issues/{{index}}/timeline")
def timeline(call: Call) -> Answer:
    """Of all that happens to a pull request only its pushes are kept."""
    pull: Pull = call.pull
    return Answer(200, [{"id": number + 1, "type": "pull_push"} for number in range(pull.pushes)])


@at("POST", f"{REPO}/statuses/{{sha}}")
def report(call: Call) -> Answer:
    call.demand("write")
    told, world = call.told, call.world
    place = (_commit(call.repository, call.parts["sha"]), told["context"], told["state"])
    words = (told.get("target_url", ""), told.get("description", ""))
    made = Status(world.next_id(), call.person, *place, *words, world.now())
    call.repository.statuses.append(made)
    call.acts.letters.of_status(call.repository, made)
    return Answer(201, call.showing.status(made))


@at("GET", f"{REPO}/commits/{{ref}}/statuses")
def list_statuses(call: Call) -> Answer:
    """In no order that could be relied on."""
    sha = _commit(call.repository, call.parts["ref"])
    found = [status for status in call.repository.statuses if status.sha == sha]
    return call.page([call.showing.status(each) for each in [*found[1:], *found[:1]]])


@at("GET", f"{REPO}/commits/{{ref}}/status")
def combined_status(call: Call) -> Answer:
    sha = _commit(call.repository, call.parts["ref"])
    found = [call.showing.status(each) for each in latest_statuses(call.repository, sha)]
    return Answer(200, {"sha": sha, "total_count": len(found), "statuses": found})


def _commit(repository: Repository, sha: str) -> Sha:
    known = repository.origin.run("cat-file", "--batch-check=%(objecttype)", stdin=f"{sha}\n".encode())
    if known.strip() != b"commit":
        raise Refusal(404, "object does not exist")
    return Sha(sha)
