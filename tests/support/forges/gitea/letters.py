"""Sends webhooks, signed, to all who asked for such news."""

import hmac
import json
from hashlib import sha256
from uuid import uuid4

from mergeyard.domain.ids import Sha
from tests.support.forges.deliveries import Deliveries, Letter
from tests.support.forges.gitea import showing
from tests.support.forges.gitea.nouns import Account, Comment, Hook, Pull, Repository, Status
from tests.support.forges.gitea.showing import Shape, Showing

EVENTS = {
    "pull_request_sync": "pull_request",
    "pull_request_label": "pull_request",
    "pull_request_comment": "issue_comment",
    "pull_request_review_approved": "pull_request_approved",
    "pull_request_review_rejected": "pull_request_rejected",
}
"""What stands in the header, where it is not the name of the event itself."""
NOTHING = Sha("0" * 40)


class Letters:
    def __init__(self, showing: Showing) -> None:
        self.deliveries = Deliveries()
        self._showing = showing

    def of_pull(self, repository: Repository, pull: Pull, by: Account, event: str, action: str) -> None:
        shown = {"number": pull.number, "pull_request": self._showing.pull(repository, pull, by)}
        self._tell(repository, by, event, {"action": action} | shown)

    def of_comment(self, repository: Repository, pull: Pull, comment: Comment) -> None:
        issue = {"number": pull.number, "title": pull.title, "pull_request": {"merged": pull.merged}}
        told = {"action": "created", "issue": issue, "comment": showing.comment(comment), "is_pull": True}
        self._tell(repository, comment.author, "pull_request_comment", told)

    def of_push(self, repository: Repository, by: Account, ref: str, old: Sha | None, new: Sha | None) -> None:
        if new is not None:
            self._tell(repository, by, "push", {"ref": ref, "before": old or NOTHING, "after": new})
        else:
            told = {"ref": ref.removeprefix("refs/heads/"), "ref_type": "branch"}
            self._tell(repository, by, "delete", told)

    def of_status(self, repository: Repository, status: Status) -> None:
        told = {"sha": status.sha, "context": status.context, "state": status.state}
        self._tell(repository, status.creator, "status", told)

    def _tell(self, repository: Repository, by: Account, event: str, told: Shape) -> None:
        body = told | {"repository": self._showing.repository(repository, by), "sender": showing.user(by)}
        for hook in repository.hooks:
            if hook.active and event in hook.events:
                self.deliveries.post(_letter(hook, event, json.dumps(body, indent=2).encode()))


def _letter(hook: Hook, event: str, body: bytes) -> Letter:
    signature = hmac.new(hook.secret.encode(), body, sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-gitea-delivery": str(uuid4()),
        "x-gitea-event": EVENTS.get(event, event),
        "x-gitea-event-type": event,
        "x-gitea-signature": signature,
        "x-hub-signature-256": f"sha256={signature}",
    }
    return Letter(hook.url, headers, body)
