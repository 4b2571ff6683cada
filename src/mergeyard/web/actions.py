"""What people do to a queue and its pull requests from any page: one address per action, all of them POSTs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.priorities import LOWEST, PRIORITIES, URGENT, named
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import QueueState
from mergeyard.domain.tokens import Scope
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of
from mergeyard.service.submissions import Errand, HeadNotConfirmed, Wish
from mergeyard.service.views import PullView
from mergeyard.web import addresses
from mergeyard.web.forms import Form, filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.signing_in import local
from mergeyard.web.visiting import Visitor

LARGEST_NUMBER = 2**31 - 1
PRIORITY_NEEDED = f"A priority is one of {', '.join(PRIORITIES)}, or a number up to {LOWEST}."

Act = Callable[[Visitor, QueueKey, Form], Awaitable[str]]
"""Does it, and says what was done."""


class Actions:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._service = hall.service
        self._acts: Mapping[str, tuple[Scope, Act]] = {
            "submit": (Scope.SUBMIT, self._submit),
            "priority": (Scope.SUBMIT, self._change_priority),
            "cancel": (Scope.SUBMIT, self._cancel),
            "restart": (Scope.SUBMIT, self._restart),
            "pause": (Scope.ADMIN, self._pause),
            "drain": (Scope.ADMIN, self._drain),
            "resume": (Scope.ADMIN, self._resume),
        }

    def routes(self) -> Sequence[Route]:
        return (
            Route("/actions", self.ask, methods=["GET"]),
            Route("/actions/{action}", self.act, methods=["POST"]),
        )

    async def ask(self, request: Request) -> Response:
        """What can be done with one pull request."""
        visitor = await self._hall.visitor(request, Scope.SUBMIT)
        key = self._hall.queue(visitor, request.query_params.get("queue", ""))
        seen = await self._service.stays.show(key, _number(request.query_params.get("number", "")))
        return self._hall.page(request, "act.html", visitor, key=key, seen=seen)

    async def act(self, request: Request) -> Response:
        scope, act = self._acts.get(request.path_params["action"], (None, None))
        if scope is None or act is None:
            raise addresses.nothing_here()
        visitor = await self._hall.visitor(request, scope)
        form = await filled_in_by(visitor, request)
        key = self._hall.queue(visitor, form.get("queue"))
        try:
            words = await act(visitor, key, form)
        except HeadNotConfirmed as refused:
            return self._ask_for_head(request, visitor, key, form, refused)
        there = local(form.get("there")) if "there" in form else addresses.queue_page(key)
        return self._hall.done(request, words, there)

    def _ask_for_head(
        self, request: Request, visitor: Visitor, key: QueueKey, form: Form, refused: HeadNotConfirmed
    ) -> Response:
        """Shows the present head and a form that submits exactly that head."""
        number = _number(form.get("number"))
        context = {
            "key": key,
            "number": number,
            "head": refused.head,
            "pushed": refused.code is Code.SHA_MISMATCH,
            "fields": {name: form.get(name) for name in ("priority", "no_batch", "force", "there") if name in form},
            "outside": self._service.sites.host(key.repo.host).pull_page(key.repo, number),
        }
        template = "confirm_head_form.html" if "hx-request" in request.headers else "confirm_head.html"
        return self._hall.answer(request, template, 409, visitor=visitor, **context)

    async def _submit(self, visitor: Visitor, key: QueueKey, form: Form) -> str:
        wish = Wish(
            head=Sha(form.get("head")) if form.get("head") else None,
            priority=_priority(form.get("priority")),
            no_batch="no_batch" in form or None,
            forced="force" in form or None,
            by_maintainer=visitor.may(Scope.ADMIN),
        )
        if wish.priority == URGENT or wish.forced:
            visitor.must(Scope.PRIORITY)
        errand = _errand(visitor, key, form, "was submitted.")
        return (await self._service.submissions.submit(errand, wish)).decode()

    async def _change_priority(self, visitor: Visitor, key: QueueKey, form: Form) -> str:
        priority = _priority(form.get("priority"))
        if priority is None:
            raise Refused(Code.INVALID_REQUEST, PRIORITY_NEEDED)
        if priority == URGENT:
            visitor.must(Scope.PRIORITY)
        errand = _errand(visitor, key, form, "has its new priority.")
        return (await self._service.submissions.prioritise(errand, priority)).decode()

    async def _cancel(self, visitor: Visitor, key: QueueKey, form: Form) -> str:
        errand = _errand(visitor, key, form, "has left the queue.")
        return (await self._service.submissions.cancel(errand)).decode()

    async def _restart(self, visitor: Visitor, key: QueueKey, form: Form) -> str:
        errand = _errand(visitor, key, form, "is tested again.")
        return (await self._service.submissions.restart(errand)).decode()

    async def _pause(self, visitor: Visitor, key: QueueKey, _: Form) -> str:
        return await self._order(visitor, key, QueueState.PAUSED, "The queue is paused: nothing merges any more.")

    async def _drain(self, visitor: Visitor, key: QueueKey, _: Form) -> str:
        return await self._order(visitor, key, QueueState.DRAINING, "The queue is draining: nothing new enters.")

    async def _resume(self, visitor: Visitor, key: QueueKey, _: Form) -> str:
        return await self._order(visitor, key, QueueState.RUNNING, "The queue runs again.")

    async def _order(self, visitor: Visitor, key: QueueKey, state: QueueState, words: str) -> str:
        actor = actor_of(visitor.token)
        return (await self._service.queues.update(key, {}, state, actor, lambda _: words.encode(), None)).decode()


def _errand(visitor: Visitor, key: QueueKey, form: Form, words: str) -> Errand:
    number = _number(form.get("number"))

    def present(view: PullView) -> bytes:
        return f"Pull request #{number} {words} {view.why.message}".encode()

    return Errand(key=key, number=number, actor=actor_of(visitor.token), present=present)


def _number(text: str) -> PrNumber:
    digits = text.removeprefix("#")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 10 and 1 <= int(digits) <= LARGEST_NUMBER:
        return PrNumber(int(digits))
    raise Refused(Code.INVALID_REQUEST, "Give the number of a pull request, such as 12.")


def _priority(text: str) -> int | None:
    """None when nothing was chosen."""
    priority = named(text)
    if text and priority is None:
        raise Refused(Code.INVALID_REQUEST, PRIORITY_NEEDED)
    return priority
