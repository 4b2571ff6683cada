"""What can be changed in the fake."""

from typing import Any

from tests.support.forges.github import answers, merging
from tests.support.forges.github.calls import Call, Created, Refused
from tests.support.forges.github.doors import LEVELS
from tests.support.forges.github.facts import AppFacts
from tests.support.forges.github.reading import app_of, opened_for

LONGEST_DESCRIPTION = 140


def give_token(call: Call) -> Any:
    app, installation = app_of(call), int(call.words["installation"])
    wanted: dict[str, str] | None = call.body.get("permissions")
    if any(LEVELS[level] > LEVELS[app.permissions.get(name, "none")] for name, level in (wanted or {}).items()):
        raise Refused(422, "The permissions requested are not granted to this installation.")
    given = call.doors.give(installation, _repositories(call, app, installation), wanted)
    if given is None:
        raise Refused(404)
    return Created(answers.installation_token(*given))


def _repositories(call: Call, app: AppFacts, installation: int) -> frozenset[str] | None:
    if "repositories" not in call.body:
        return None
    owners = [owner for owner, number in app.installed_in.items() if number == installation]
    named = {f"{owner}/{name}".lower() for owner in owners for name in call.body["repositories"]}
    if not named <= call.repositories.keys():
        raise Refused(
            422, "There is at least one repository that does not exist or is not accessible to the installation."
        )
    return frozenset(named)


def merge(call: Call) -> Any:
    body = call.body
    message = "\n\n".join(filter(None, [body.get("commit_title", "Merge"), body.get("commit_message")]))
    try:
        commit = merging.merge(
            call.repository, call.change, body.get("merge_method", "merge"), body.get("sha"), message
        )
    except merging.Refusal as refusal:
        raise Refused(refusal.status, refusal.words) from refusal
    return answers.merge_result(commit)


def open_pull(call: Call) -> Any:
    kept, body = call.repository, call.body
    if kept.origin.ref(body["head"]) is None or kept.origin.ref(body["base"]) is None:
        raise Refused(422, "Validation Failed")
    if opened_for(call, body["head"]):
        raise Refused(422, "A pull request already exists")
    facts = {"title": body["title"], "base": body["base"], "draft": body.get("draft", False), "text": body["body"]}
    return Created(answers.pull(kept, kept.opens(body["head"], author=call.visitor.login, **facts)))


def change_pull(call: Call) -> Any:
    if call.body.get("state") == "closed":
        call.repository.closes(call.change.number)
    return answers.pull(call.repository, call.change)


def comment(call: Call) -> Any:
    said = call.repository.says(call.change.number, call.visitor.login, call.body["body"])
    return Created(answers.comment(said))


def change_comment(call: Call) -> Any:
    call.comment.text = call.body["body"]
    call.comment.changed_at = call.repository.clock.now()
    return answers.comment(call.comment)


def react(call: Call) -> Any:
    reaction = (call.visitor.login, call.body["content"])
    answer = answers.reaction(*reaction)
    if reaction in call.comment.reactions:
        return answer
    call.comment.reactions.append(reaction)
    return Created(answer)


def unlabel(call: Call) -> Any:
    label = call.words["label"]
    if label not in call.change.labels:
        raise Refused(404, "Label does not exist")
    call.repository.unlabels(call.change.number, label)
    return [answers.label(name) for name in call.change.labels]


def report(call: Call) -> Any:
    kept, body, sha = call.repository, call.body, call.words["sha"]
    if len(body.get("description") or "") > LONGEST_DESCRIPTION:
        raise Refused(422, "Validation Failed")
    known = kept.origin.run("cat-file", "--batch-check", stdin=sha.encode())
    if b" commit " not in known:
        raise Refused(422, f"No commit found for SHA: {sha}")
    words = {"url": body.get("target_url"), "description": body.get("description")}
    status = kept.reports(sha, body["context"], body["state"], **words)
    return Created(answers.status(status))
