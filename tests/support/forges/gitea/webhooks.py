"""Sends signed webhooks to the hooks that subscribe to the event."""

import hmac
import json
from hashlib import sha256
from uuid import uuid4

from mergeyard.domain.ids import Sha
from tests.support.forges.deliveries import Deliveries, Delivery
from tests.support.forges.gitea import payloads as payloads_module
from tests.support.forges.gitea.payloads import Payload, Payloads
from tests.support.forges.gitea.world import Account, Comment, Hook, PullRequest, Repository, Status

EVENTS = {
    "pull_request_sync": "pull_request",
    "pull_request_label": "pull_request",
    "pull_request_comment": "issue_comment",
    "pull_request_review_approved": "pull_request_approved",
    "pull_request_review_rejected": "pull_request_rejected",
}
"""Value of the event header where it differs from the event's name."""
REVIEW_PREFIXES = ("pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment")


class Webhooks:
    def __init__(self, payloads: Payloads) -> None:
        self.deliveries = Deliveries()
        self._payloads = payloads

    def send_pull_request(
        self, repository: Repository, pull: PullRequest, by: Account, event: str, action: str
    ) -> None:
        content = {"number": pull.number, "pull_request": self._payloads.pull_request(repository, pull, by)}
        self._send(repository, by, event, {"action": action} | content)

    def send_comment(
        self, repository: Repository, pull: PullRequest, comment: Comment, action: str = "created"
    ) -> None:
        issue = {"number": pull.number, "title": pull.title, "pull_request": {"merged": pull.merged}}
        content = {"action": action, "issue": issue, "comment": payloads_module.comment(comment), "is_pull": True}
        self._send(repository, comment.author, "pull_request_comment", content)

    def send_push(self, repository: Repository, by: Account, ref: str, old: Sha | None, new: Sha | None) -> None:
        if new is not None:
            self._send(repository, by, "push", {"ref": ref, "before": old or repository.origin.null_sha, "after": new})
        else:
            content = {"ref": ref.removeprefix("refs/heads/"), "ref_type": "branch"}
            self._send(repository, by, "delete", content)

    def send_status(self, repository: Repository, status: Status) -> None:
        content = {"sha": status.sha, "context": status.context, "state": status.state}
        self._send(repository, status.creator, "status", content)

    def _send(self, repository: Repository, by: Account, event: str, content: Payload) -> None:
        body = content | {"repository": self._payloads.repository(repository, by), "sender": payloads_module.user(by)}
        names = {event, "pull_request_review"} if event.startswith(REVIEW_PREFIXES) else {event}
        for hook in repository.hooks:
            if hook.active and names & {*hook.events}:
                self.deliveries.enqueue(_sign(hook, event, json.dumps(body, indent=2).encode()))


def _sign(hook: Hook, event: str, body: bytes) -> Delivery:
    signature = hmac.new(hook.secret.encode(), body, sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-gitea-delivery": str(uuid4()),
        "x-gitea-event": EVENTS.get(event, event),
        "x-gitea-event-type": event,
        "x-gitea-signature": signature,
        "x-hub-signature-256": f"sha256={signature}",
    }
    return Delivery(hook.url, headers, body)
