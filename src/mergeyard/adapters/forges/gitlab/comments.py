"""Reads the labels and notes of a merge request, and writes our own notes and reactions."""

import re

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.http import ForgeClient, to_instant
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import Comment, HostRefused, HostUnavailable, Thread

PER_PAGE = 100
MAX_PAGES = 20
"""Notes before the last 2,000 are not read."""
QUICK_ACTION_PATTERN = re.compile(r"((?:^|[\r\n])[ \t]*)/")
REACTIONS = {True: "rocket", False: "confused"}


async def read_thread(client: ForgeClient, repo: Repo, number: PullRequestNumber, since: Instant) -> Thread:
    path = wire.merge_request_api_path(repo, number)
    payload = await client.get(path, wire.MergeRequest)
    notes = await _read_notes(client, path, since)
    if payload is None or notes is None:
        raise await wire.build_missing_error(client, repo, f"merge request {number}")
    by_users = sorted((note for note in notes if not note.system), key=lambda note: (note.created_at, note.id))
    return Thread(frozenset(payload.labels), tuple(map(_to_comment, by_users)))


async def put_comment(
    client: ForgeClient, repo: Repo, number: PullRequestNumber, text: str, comment: str | None, account: wire.User
) -> str:
    path = wire.merge_request_api_path(repo, number)
    if comment is not None and await _edit_comment(client, path, comment, text):
        return comment
    existing = await _find_own_comment(client, path, text, account)
    if existing is not None and await _edit_comment(client, path, existing, text):
        return existing
    reply = await client.send("POST", f"{path}/notes", {"body": escape_quick_actions(text)})
    if not reply.is_success:
        raise await wire.build_reply_error(client, repo, reply)
    return str(reply.decode(wire.Note).id)


async def react(client: ForgeClient, repo: Repo, number: PullRequestNumber, comment: str, *, success: bool) -> None:
    path = f"{wire.merge_request_api_path(repo, number)}/notes/{wire.quote_segment(comment)}/award_emoji"
    reply = await client.send("POST", path, {"name": REACTIONS[success]})
    # GitLab answers 404 if the note is gone, and also if the reaction exists.
    reply.raise_for_status(allowed=(404,))


async def remove_label(client: ForgeClient, repo: Repo, number: PullRequestNumber, label: str) -> None:
    reply = await client.send("PUT", wire.merge_request_api_path(repo, number), {"remove_labels": label})
    if reply.status == 404:
        await wire.read_project(client, repo)
    else:
        reply.raise_for_status()


def escape_quick_actions(text: str) -> str:
    """GitLab executes lines like `/merge` or `/close` with our permissions, also in text that we only quote."""
    return QUICK_ACTION_PATTERN.sub(r"\1\\/", text)


async def _edit_comment(client: ForgeClient, path: str, comment: str, text: str) -> bool:
    """False if the note is gone."""
    reply = await client.send(
        "PUT", f"{path}/notes/{wire.quote_segment(comment)}", {"body": escape_quick_actions(text)}
    )
    return reply.raise_for_status(allowed=(404,)).is_success


async def _find_own_comment(client: ForgeClient, path: str, text: str, account: wire.User) -> str | None:
    """Our note with the same first line. It exists without its id being stored if the response was lost."""
    marker = text.partition("\n")[0]
    for note in await _read_notes(client, path, Instant(0)) or ():
        if note.author and note.author.id == account.id and note.body.partition("\n")[0].rstrip() == marker:
            return str(note.id)
    return None


async def _read_notes(client: ForgeClient, path: str, since: Instant) -> list[wire.Note] | None:
    """Newest first, so that pages before `since` are not requested. None if the merge request is gone."""
    found = list[wire.Note]()
    for page in range(1, MAX_PAGES + 1):
        query = {"order_by": "created_at", "sort": "desc", "per_page": PER_PAGE, "page": page}
        notes = await client.get(f"{path}/notes", list[wire.Note], query)
        if notes is None:
            return None
        found += notes
        if len(notes) < PER_PAGE or to_instant(notes[-1].created_at) < since:
            return found
    return found


def _to_comment(note: wire.Note) -> Comment:
    return Comment(
        id=str(note.id), author=wire.get_username(note.author), text=note.body, at=to_instant(note.created_at)
    )


DEVELOPER_LEVEL = 30
MAINTAINER_LEVEL = 40


class OwnAccount:
    """Cached indefinitely: a token belongs to one account."""

    def __init__(self, client: ForgeClient) -> None:
        self._client = client
        self._user: wire.User | None = None

    async def read_user(self) -> wire.User:
        if self._user is None:
            self._user = await self._client.get("/user", wire.User)
        if self._user is None:
            raise HostUnavailable("GitLab does not report the account of our token")
        return self._user


async def can_write(client: ForgeClient, repo: Repo, user: str, branch: str) -> bool:
    """Whether GitLab lets the user merge into the branch: every Developer, unless a rule protects it."""
    member = await _find_member(client, repo, user)
    if member is None or member.access_level < DEVELOPER_LEVEL:
        return False
    access_rules = await _read_access_rules(client, repo, branch)
    return access_rules is None or any([await _grants(client, access, member) for access in access_rules])


async def can_maintain(client: ForgeClient, repo: Repo, user: str) -> bool:
    member = await _find_member(client, repo, user)
    return member is not None and member.access_level >= MAINTAINER_LEVEL


async def _find_member(client: ForgeClient, repo: Repo, user: str) -> wire.Member | None:
    """The membership with the highest role, if the user is a member through several groups."""
    if not user:
        return None
    found = await _search_members(client, f"{wire.repo_api_path(repo)}/members/all", user)
    if not found:
        await wire.read_project(client, repo)
    matching = [member for member in found if member.username.lower() == user.lower() and member.state == "active"]
    return max(matching, key=lambda member: member.access_level, default=None)


async def _search_members(client: ForgeClient, path: str, user: str) -> list[wire.Member]:
    return await client.get_all(path, list[wire.Member], {"query": user, "per_page": 100})


async def _read_access_rules(client: ForgeClient, repo: Repo, branch: str) -> list[wire.BranchAccess] | None:
    """Alternatives, of which one is sufficient; None if no rule protects the branch, or the rules are not visible to
    us. GitLab applies the most permissive of several rules, and an account that can push can also merge."""
    path = f"{wire.repo_api_path(repo)}/protected_branches"
    try:
        rules = await client.get_all(path, list[wire.ProtectedBranch], {"per_page": 100})
    except HostRefused:
        return None
    matching = [rule for rule in rules if rule.protects(branch)]
    levels = [level for rule in matching for level in (*rule.merge_access_levels, *rule.push_access_levels)]
    return levels if matching else None


async def _grants(client: ForgeClient, access: wire.BranchAccess, member: wire.Member) -> bool:
    """Level 0 means no one. Level 60 means instance administrators, which the API does not identify: never granted."""
    if access.deploy_key_id is not None:
        return False
    if access.user_id is not None:
        return access.user_id == member.id
    if access.group_id is not None:
        return await _is_in_group(client, access.group_id, member)
    return 0 < (access.access_level or 0) <= member.access_level


async def _is_in_group(client: ForgeClient, group: int, member: wire.Member) -> bool:
    """Also False if the members of the group are not visible to us."""
    try:
        found = await _search_members(client, f"/groups/{group}/members/all", member.username)
    except HostRefused:
        return False
    return any(one.id == member.id and one.state == "active" for one in found)
