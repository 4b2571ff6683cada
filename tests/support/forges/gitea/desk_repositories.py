"""Answers for accounts, repositories, their people, rules and webhooks."""

import shutil
from typing import Any

from msgspec import convert, structs

from tests.support.forges.gitea import showing
from tests.support.forges.gitea.calls import Answer, Call, at
from tests.support.forges.gitea.nouns import Hook, Repository, Rule, Settings
from tests.support.forges.gitea.world import Refusal

VERSION = "1.26.0"
REPO = "/repos/{owner}/{repo}"


@at("GET", "/version")
def version(call: Call) -> Answer:  # noqa: ARG001
    return Answer(200, {"version": VERSION})


@at("GET", "/user")
def who_am_i(call: Call) -> Answer:
    return Answer(200, showing.user(call.person))


@at("GET", "/users/{username}")
def who_is(call: Call) -> Answer:
    return Answer(200, showing.user(call.world.account(call.parts["username"])))


@at("POST", "/users/{username}/tokens")
def make_token(call: Call) -> Answer:
    scopes = call.told["scopes"]
    secret = call.world.make_token(call.world.account(call.parts["username"]), *scopes)
    return Answer(201, {"id": call.world.next_id(), "name": call.told["name"], "sha1": secret, "scopes": scopes})


@at("POST", "/admin/users")
def make_account(call: Call) -> Answer:
    if not call.person.site_admin:
        raise Refusal(403, "user should be the site admin")
    return Answer(201, showing.user(call.world.make_account(call.told["username"], call.told["password"])))


@at("POST", "/user/repos")
def make_repository(call: Call) -> Answer:
    made = add_repository(call, call.told["name"])
    if call.told.get("auto_init"):
        made.origin.commit("main", {"README.md": made.name})
    return Answer(201, call.showing.repository(made, call.person))


@at("POST", f"{REPO}/forks")
def fork(call: Call) -> Answer:
    source = call.repository
    made = add_repository(call, source.name)
    shutil.rmtree(made.origin.path)
    shutil.copytree(source.origin.path, made.origin.path)
    return Answer(202, call.showing.repository(made, call.person))


def add_repository(call: Call, name: str) -> Repository:
    path = f"{call.person.login}/{name}"
    if path.lower() in call.world.repositories:
        raise Refusal(409, "The repository with the same name already exists.")
    made = Repository(call.world.next_id(), call.person, name, call.world.rooms.made(path))
    call.world.repositories[path.lower()] = made
    return made


@at("GET", REPO)
def read_repository(call: Call) -> Answer:
    return Answer(200, call.showing.repository(call.repository, call.person))


@at("PATCH", REPO)
def change_repository(call: Call) -> Answer:
    call.demand("admin")
    call.repository.settings = convert(structs.asdict(call.repository.settings) | call.told, Settings)
    return Answer(200, call.showing.repository(call.repository, call.person))


@at("GET", f"{REPO}/branches/{{branch}}")
def read_branch(call: Call) -> Answer:
    name = call.parts["branch"]
    if call.repository.origin.ref(name) is None:
        raise Refusal(404, "not found")
    return Answer(200, call.showing.branch(call.repository, name, call.person))


@at("GET", f"{REPO}/git/refs/{{ref}}")
def read_refs(call: Call) -> Answer:
    """All that begin so."""
    wanted = f"refs/{call.parts['ref']}"
    found = {ref: sha for ref, sha in call.repository.origin.refs().items() if ref.startswith(wanted)}
    if not found:
        raise Refusal(404, "not found")
    return Answer(200, [{"ref": ref, "object": {"type": "commit", "sha": sha}} for ref, sha in found.items()])


@at("POST", f"{REPO}/branch_protections")
def protect(call: Call) -> Answer:
    call.demand("admin")
    rule = convert(call.told, Rule)
    if any(each.rule_name == rule.rule_name for each in call.repository.rules):
        raise Refusal(403, "Branch protection already exist")
    call.repository.rules.append(rule)
    return Answer(201, structs.asdict(rule))


@at("GET", f"{REPO}/branch_protections/{{name}}")
def read_rule(call: Call) -> Answer:
    call.demand("admin")
    rule = next((each for each in call.repository.rules if each.rule_name == call.parts["name"]), None)
    if rule is None:
        raise Refusal(404, "not found")
    return Answer(200, structs.asdict(rule))


@at("PUT", f"{REPO}/collaborators/{{collaborator}}")
def admit(call: Call) -> Answer:
    call.demand("admin")
    account = call.world.account(call.parts["collaborator"])
    call.repository.roles[account.login] = call.told["permission"]
    return Answer(204)


@at("GET", f"{REPO}/collaborators/{{collaborator}}/permission")
def read_role(call: Call) -> Answer:
    name = call.parts["collaborator"]
    if name.lower() != call.person.login.lower() and not call.world.may(call.repository, call.person, "admin"):
        raise Refusal(403, "Only admins can query all permissions, collaborators can query only their own")
    account = call.world.account(name)
    role = call.world.role(call.repository, account)
    return Answer(200, {"permission": role, "role_name": role, "user": showing.user(account)})


@at("GET", f"{REPO}/hooks")
def list_hooks(call: Call) -> Answer:
    call.demand("admin")
    return call.page([showing.hook(each) for each in call.repository.hooks])


@at("POST", f"{REPO}/hooks")
def add_hook(call: Call) -> Answer:
    call.demand("admin")
    config: dict[str, Any] = call.told["config"]
    facts = (config["url"], config.get("secret", ""), config["content_type"], call.told["events"], call.told["active"])
    made = Hook(call.world.next_id(), *facts)
    call.repository.hooks.append(made)
    return Answer(201, showing.hook(made))
