"""The HTTP application: one Starlette application with the routes of the API and of the pages."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mergeyard.api.endpoint import PREFIX, Handler, WaitForEffect
from mergeyard.api.middleware import (
    ErrorHandler,
    ErrorsMiddleware,
    LimitsMiddleware,
    RequestIdMiddleware,
    UnreadBodyMiddleware,
)
from mergeyard.api.pull_requests import PullRequestEndpoints
from mergeyard.api.queues import EventEndpoints, QueueEndpoints, RunEndpoints
from mergeyard.api.responses import ERROR_KINDS, build_error_response, error_headers, to_refusal
from mergeyard.api.tokens import TokenEndpoints
from mergeyard.api.webhooks import WebhookEndpoints
from mergeyard.api.whatif import WhatIfEndpoints
from mergeyard.ports.forge import HostError
from mergeyard.ports.git import GitError
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.errors import RequestRefused
from mergeyard.service.service import Service


class Pages(Protocol):
    """The routes of the pages, and what the application needs to serve them."""

    @property
    def routes(self) -> Sequence[BaseRoute]: ...
    @property
    def middleware(self) -> Sequence[Middleware]: ...
    @property
    def exception_handlers(self) -> Mapping[type[Exception], ErrorHandler]: ...

    async def render_error(self, request: Request, refused: RequestRefused, status: int, title: str) -> Response: ...


def build_app(routes: Sequence[BaseRoute], pages: Pages | None = None) -> Starlette:
    async def handle_error(request: Request, error: Exception) -> Response:
        refused = to_refusal(request, error)
        if pages is None or not prefers_html(request):
            return build_error_response(request, refused)
        kind = ERROR_KINDS[refused.code]
        response = await pages.render_error(request, refused, kind.status, kind.title)
        response.headers.update(error_headers(refused))
        return response

    handled = (RequestRefused, HTTPException, StoreUnavailable, HostError, GitError)
    app = Starlette(
        routes=[*routes, *(pages.routes if pages else ())],
        middleware=[
            Middleware(RequestIdMiddleware),
            *(pages.middleware if pages else ()),
            Middleware(UnreadBodyMiddleware),
            Middleware(ErrorsMiddleware, handler=handle_error),
            Middleware(LimitsMiddleware),
        ],
        exception_handlers={**dict.fromkeys(handled, handle_error), **(pages.exception_handlers if pages else {})},
    )
    app.router.redirect_slashes = False
    return app


def prefers_html(request: Request) -> bool:
    """True for browsers, and for requests that a page's own scripts send, outside of the API."""
    if f"{request.scope['path']}/".startswith(PREFIX):
        return False
    return "hx-request" in request.headers or "text/html" in request.headers.get("accept", "").lower()


def build_effect_waits(service: Service) -> Mapping[str, WaitForEffect]:
    return {"updateQueue": QueueEndpoints(service).wait_for_pause}


def build_handlers(service: Service, public_url: str) -> Mapping[str, Handler]:
    pull_requests = PullRequestEndpoints(service)
    queues = QueueEndpoints(service)
    runs = RunEndpoints(service, public_url)
    webhooks = WebhookEndpoints(service)
    tokens = TokenEndpoints(service)
    return {
        "submitPullRequest": pull_requests.submit,
        "cancelPullRequest": pull_requests.cancel,
        "restartTestsOnPullRequest": pull_requests.restart,
        "previewPullRequestAction": pull_requests.preview,
        "previewCommitMessage": pull_requests.preview_message,
        "getSubmittedPullRequest": pull_requests.get,
        "getSubmittedPullRequests": pull_requests.get_several,
        "listPullRequests": pull_requests.list,
        "listOpenPullRequests": pull_requests.list_open,
        "getProvenance": pull_requests.get_provenance,
        "setImpactedTargets": pull_requests.set_impacted_targets,
        "getMergeQueueTestingDetails": runs.details,
        "listMergeQueueTestingResults": runs.results,
        "reportCommitStatus": runs.report_status,
        "createQueue": queues.create,
        "getQueue": queues.get,
        "listQueues": queues.list,
        "updateQueue": queues.update,
        "deleteQueue": queues.delete,
        "listEvents": EventEndpoints(service).list,
        "verifyLandings": queues.verify_landings,
        "replayQueue": WhatIfEndpoints(service).replay,
        "createWebhook": webhooks.create,
        "listWebhooks": webhooks.list,
        "updateWebhook": webhooks.update,
        "deleteWebhook": webhooks.delete,
        "testWebhook": webhooks.test,
        "listWebhookDeliveries": webhooks.deliveries,
        "resendWebhookEvent": webhooks.resend,
        "getCurrentToken": tokens.get_current,
        "createToken": tokens.create,
        "listTokens": tokens.list,
        "revokeToken": tokens.revoke,
        "getMergeQueueMetrics": queues.metrics,
    }
