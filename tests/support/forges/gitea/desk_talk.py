"""Answers for what people put on pull requests: comments, reactions and labels."""

from tests.support.forges.gitea import showing
from tests.support.forges.gitea.calls import Answer, Call, at
from tests.support.forges.gitea.desk_repositories import REPO
from tests.support.forges.gitea.nouns import Comment, Label, Reaction
from tests.support.forges.gitea.world import Refusal, comment_of

TALK = f"{REPO}/issues/{{index}}"
COMMENT = f"{REPO}/issues/comments/{{id}}"


@at("GET", f"{TALK}/comments")
def list_comments(call: Call) -> Answer:
    """All at once: these have no pages."""
    since = call.since()
    heard = [said for said in call.pull.comments if since is None or said.updated >= since]
    return Answer(200, [showing.comment(each) for each in heard])


@at("POST", f"{TALK}/comments")
def say(call: Call) -> Answer:
    pull, now = call.pull, call.world.now()
    said = Comment(call.world.next_id(), call.person, call.told["body"], now, now)
    pull.comments.append(said)
    pull.updated = now
    call.acts.letters.of_comment(call.repository, pull, said)
    return Answer(201, showing.comment(said))


@at("PATCH", COMMENT)
def say_anew(call: Call) -> Answer:
    _, said = comment_of(call.repository, call.parts["id"])
    if said.author is not call.person:
        call.demand("write")
    said.body, said.updated = call.told["body"], call.world.now()
    return Answer(200, showing.comment(said))


@at("GET", f"{COMMENT}/reactions")
def list_reactions(call: Call) -> Answer:
    _, said = comment_of(call.repository, call.parts["id"])
    return Answer(200, [showing.reaction(each, call.world.account(each.login)) for each in said.reactions])


@at("POST", f"{COMMENT}/reactions")
def react(call: Call) -> Answer:
    _, said = comment_of(call.repository, call.parts["id"])
    made = Reaction(call.person.login, call.told["content"])
    known = made in said.reactions
    said.reactions.extend([] if known else [made])
    return Answer(200 if known else 201, showing.reaction(made, call.person))


@at("GET", f"{REPO}/labels")
def list_labels(call: Call) -> Answer:
    return call.page([showing.label(each) for each in call.repository.labels])


@at("POST", f"{REPO}/labels")
def make_label(call: Call) -> Answer:
    call.demand("write")
    made = Label(call.world.next_id(), call.told["name"], call.told["color"].lstrip("#"))
    call.repository.labels.append(made)
    return Answer(201, showing.label(made))


@at("GET", f"{TALK}/labels")
def list_labels_of_pull(call: Call) -> Answer:
    return Answer(200, [showing.label(each) for each in call.pull.labels])


@at("POST", f"{TALK}/labels")
def put_label(call: Call) -> Answer:
    call.demand("write")
    pull = call.pull
    new = [label for label in call.repository.labels if label.id in call.told["labels"] and label not in pull.labels]
    pull.labels.extend(new)
    call.acts.touch(call.repository, pull, call.person, "pull_request_label", "label_updated")
    return Answer(200, [showing.label(each) for each in pull.labels])


@at("DELETE", f"{TALK}/labels/{{id}}")
def take_label(call: Call) -> Answer:
    call.demand("write")
    pull, identity = call.pull, int(call.parts["id"])
    if all(label.id != identity for label in call.repository.labels):
        raise Refusal(422, "label does not exist")
    pull.labels[:] = [label for label in pull.labels if label.id != identity]
    call.acts.touch(call.repository, pull, call.person, "pull_request_label", "label_updated")
    return Answer(204)
