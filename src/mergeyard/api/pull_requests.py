"""The endpoints about pull requests."""

from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec import UNSET, UnsetType, convert

from mergeyard.api import presenting, response_schemas
from mergeyard.api import request_schemas as r
from mergeyard.api.auth import require_scope
from mergeyard.api.endpoint import Call, Endpoints
from mergeyard.api.presenting import encode
from mergeyard.api.responses import invalid_request
from mergeyard.domain.access import Scope
from mergeyard.domain.config import URGENT
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha, SubmissionId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Forecast
from mergeyard.ports.store import SubmissionsQuery
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.service import Service
from mergeyard.service.submissions import PullRequestCommand, SubmitOptions
from mergeyard.service.views import SubmissionView

MAX_AGE_MS = 5 * SECOND
"""Lifetime of cached responses. Priority grows with waiting time, so the order can change without a new revision."""
MAX_RESPONSES = 1000

Responses = dict[PullRequestNumber, bytes]


class ResponseCache:
    def __init__(self) -> None:
        self._by_actor = WeakKeyDictionary[QueueActor, tuple[Queue, Forecast, int, Responses]]()

    def get_responses(self, actor: QueueActor, now: Instant) -> Responses:
        """Returns the valid responses by number; a response that the caller adds is valid as long as the others."""
        cached = self._by_actor.get(actor)
        if (
            cached is not None
            and cached[0] is actor.queue
            and cached[1] is actor.forecast
            and cached[2] == now // MAX_AGE_MS
            and len(cached[3]) < MAX_RESPONSES
        ):
            return cached[3]
        responses = Responses()
        self._by_actor[actor] = (actor.queue, actor.forecast, now // MAX_AGE_MS, responses)
        return responses


T = TypeVar("T")


class PullRequestEndpoints(Endpoints):
    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._cache = ResponseCache()

    async def submit(self, call: Call) -> bytes:
        request: r.SubmitPullRequest = call.request
        options = SubmitOptions(
            head=_none_if_unset(request.pr.sha),
            priority=_none_if_unset(request.priority),
            no_batch=_none_if_unset(request.no_batch),
            forced=_none_if_unset(request.force),
            by_maintainer=call.token.has_scope(Scope.ADMIN),
            force_needs_head=False,
        )
        if options.priority == URGENT or options.forced:
            require_scope(call.token, Scope.PRIORITY)
        return await self._service.submissions.submit(self._command(call), options)

    async def cancel(self, call: Call) -> bytes:
        return await self._service.submissions.cancel(self._command(call))

    async def restart(self, call: Call) -> bytes:
        return await self._service.submissions.restart(self._command(call))

    async def preview(self, call: Call) -> bytes:
        request: r.PreviewPullRequestAction = call.request
        preview = await self._service.previews.preview(
            self._resolve_queue(call),
            PullRequestNumber(request.pr.number),
            request.action,
            _none_if_unset(request.priority),
        )
        return encode(presenting.present_preview(preview))

    async def preview_message(self, call: Call) -> bytes:
        key, number = self._resolve_queue(call), PullRequestNumber(call.request.pr.number)
        return encode(presenting.present_merge_preview(number, await self._service.previews.preview_merge(key, number)))

    async def list_open(self, call: Call) -> bytes:
        key = self._resolve_queue(call)
        await self._service.registry.get(key)
        listed = await self._service.open_pull_requests.list(key)
        return encode(response_schemas.OpenPullRequests(pull_requests=tuple(map(presenting.present_open, listed))))

    async def get(self, call: Call) -> bytes:
        request: r.GetSubmittedPullRequest = call.request
        key, number, queries = self._resolve_queue(call), request.pr.number, self._service.submission_queries
        if isinstance(number, int) and not request.include_timeline:
            return await self._get_by_number(key, PullRequestNumber(number))
        view = (
            await queries.view_by_number(key, PullRequestNumber(number))
            if isinstance(number, int)
            else await queries.view_by_branch(key, request.pr.branch or "")
        )
        if not request.include_timeline:
            return _encode_view(view)
        entries = await self._service.submission_queries.read_timeline(key, view.submission.id)
        return encode(presenting.present_pull_request(view, tuple(map(presenting.present_timeline_entry, entries))))

    async def _get_by_number(self, key: QueueKey, number: PullRequestNumber) -> bytes:
        actor = await self._service.registry.get(key)
        cached = self._cache.get_responses(actor, self._service.clock.now())
        if number in cached:
            return cached[number]
        response = _encode_view(await self._service.submission_queries.view_by_number(key, number))
        if actor.queue.submission_of(number) is not None:
            cached[number] = response
        return response

    async def get_provenance(self, call: Call) -> bytes:
        request: r.GetProvenance = call.request
        key, number, provenance = self._resolve_queue(call), request.pr.number, self._service.provenance
        commit = (
            await provenance.find_commit(key, PullRequestNumber(number))
            if isinstance(number, int)
            else Sha(request.pr.merged_sha or "")
        )
        envelope = convert(
            await provenance.read(key, commit), response_schemas.ProvenanceEnvelope, from_attributes=True
        )
        return encode(response_schemas.Provenance(sha=commit, envelope=envelope))

    async def set_impacted_targets(self, call: Call) -> bytes:
        request: r.SetImpactedTargets = call.request
        key, number = self._resolve_queue(call), PullRequestNumber(request.pr.number)
        uploaded = request.impacted_targets
        targets = uploaded.impacted_targets
        count = "ALL" if targets.everything else len(targets.names)

        def encode_response(head: Sha) -> bytes:
            return encode(response_schemas.ImpactedTargetsResult(pr_number=number, pr_sha=head, impacted_targets=count))

        head, uploads = _none_if_unset(request.pr.sha), self._service.impacted_targets_uploads
        return await uploads.save(key, number, head, uploaded, encode_response, call.idempotent_request, call.token.id)

    async def list(self, call: Call) -> bytes:
        request: r.ListPullRequests = call.request
        page = SubmissionsQuery(
            take=request.take,
            before=_decode_cursor(_none_if_unset(request.cursor)),
            state=_none_if_unset(request.state),
            since=_none_if_unset(request.since),
            until=_none_if_unset(request.until),
            concluded_since=_none_if_unset(request.concluded_since),
        )
        views, next_submission_id = await self._service.submission_queries.read_page(self._resolve_queue(call), page)
        response = response_schemas.PullRequests(
            pull_requests=tuple(map(presenting.present_pull_request, views)),
            next_cursor=UNSET if next_submission_id is None else str(next_submission_id),
        )
        return encode(response)

    async def get_several(self, call: Call) -> bytes:
        request: r.GetSubmittedPullRequests = call.request
        numbers = [PullRequestNumber(pr.number) for pr in request.prs]
        found, missing = await self._service.submission_queries.read_by_number(self._resolve_queue(call), numbers)
        response = response_schemas.FoundPullRequests(
            pull_requests=tuple(map(presenting.present_pull_request, found)),
            not_found=tuple(missing),
        )
        return encode(response)

    def _command(self, call: Call) -> PullRequestCommand:
        return PullRequestCommand(
            key=self._resolve_queue(call),
            number=PullRequestNumber(call.request.pr.number),
            actor=encode_actor(call.token),
            render=_encode_view,
            idempotent_request=call.idempotent_request,
        )


def _encode_view(view: SubmissionView) -> bytes:
    return encode(presenting.present_pull_request(view))


def _none_if_unset(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value


def _decode_cursor(cursor: str | None) -> SubmissionId | None:
    if cursor is None:
        return None
    if not cursor.isdecimal() or len(cursor) > 18:
        raise invalid_request("/cursor", "expected the `nextCursor` of the previous page")
    return SubmissionId(int(cursor))
