"""What can be read of the fake."""

from typing import Any

from tests.support.forges.github import answers
from tests.support.forges.github.calls import Call, Page, Refused
from tests.support.forges.github.facts import AppFacts, Change


def app_of(call: Call) -> AppFacts:
    if call.doors.app is None or not call.visitor.is_app:
        raise Refused(401, "A JSON web token could not be decoded")
    return call.doors.app


def app(call: Call) -> Any:
    return answers.app(app_of(call))


def app_hook(call: Call) -> Any:
    return answers.hook_config(next(iter(app_of(call).hooks), None))


def installation(call: Call) -> Any:
    known, owner = app_of(call), call.repository.owner
    if owner not in known.installed_in:
        raise Refused(404)
    return answers.installation(known, known.installed_in[owner], owner)


def user(call: Call) -> Any:
    return answers.user(call.visitor.login)


def repository(call: Call) -> Any:
    return answers.repository(call.repository, call.repository.roles.get(call.visitor.login))


def pull(call: Call) -> Any:
    return answers.pull(call.repository, call.change)


def pulls(call: Call) -> Page:
    kept, state, head = call.repository, call.query.get("state", "open"), call.query.get("head")
    found = [change for change in kept.changes.values() if state == "all" or change.open == (state == "open")]
    if head:
        found = [change for change in found if head == f"{change.home.partition('/')[0]}:{change.branch}"]
    found.sort(key=lambda change: (change.at, change.number), reverse=True)
    return Page([answers.listed_pull(kept, change) for change in call.page(found)], len(found))


def reviews(call: Call) -> Page:
    whole = call.change.reviews
    return Page([answers.review(person, opinion) for person, opinion in call.page(whole)], len(whole))


def branch(call: Call) -> Any:
    return answers.branch(call.repository, call.words["branch"], call.tip)


def ref(call: Call) -> Any:
    return answers.ref(f"refs/heads/{call.words['branch']}", call.tip)


def rules(call: Call) -> Page:
    whole = answers.rules(call.repository, call.words["branch"])
    return Page(call.page(whole), len(whole))


def ruleset(call: Call) -> Any:
    number, kept = int(call.words["ruleset"]), call.repository
    guards = {answers.RULESET: kept.rulesets, answers.UPDATE_RULESET: kept.update_rulesets}.get(number, {})
    guard = next(iter(guards.values()), None)
    if guard is None:
        raise Refused(404)
    login = call.visitor.login
    return answers.ruleset(kept, number, guard, login, edits=kept.roles.get(login) == "admin")


def protection(call: Call) -> Any:
    guard = call.repository.guards.get(call.words["branch"])
    if guard is None:
        raise Refused(404, "Branch not protected")
    return answers.protection(guard)


def combined_status(call: Call) -> Any:
    sha = commit_of(call)
    statuses = list(call.repository.reported.get(sha, {}).values())
    return answers.combined(statuses, call.page(statuses), sha)


def check_runs(call: Call) -> Any:
    sha = commit_of(call)
    runs = call.repository.latest_runs(sha)
    return answers.check_runs(runs, call.page(runs), sha)


def commit_of(call: Call) -> str:
    """A branch may be named as well."""
    return call.repository.origin.tip(call.words["sha"])


def comments(call: Call) -> Page:
    change, since = call.change, call.query.get("since", "")
    of_it = [said for said in call.repository.said.values() if said.number == change.number]
    whole = [answers.comment(said) for said in of_it if answers.time(said.changed_at) >= since]
    return Page(call.page(whole), len(whole))


def issues(call: Call) -> Page:
    call.repository  # noqa: B018
    return Page([], 0)


def permission(call: Call) -> Any:
    person = call.words["person"]
    return answers.permission(person, call.repository.roles.get(person, "read"))


def hooks(call: Call) -> Page:
    whole = call.repository.hooks
    return Page([answers.hook(hook) for hook in call.page(whole)], len(whole))


def opened_for(call: Call, branch: str) -> Change | None:
    changes = call.repository.changes.values()
    return next((change for change in changes if change.open and change.branch == branch), None)
