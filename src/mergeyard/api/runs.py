"""The endpoints about test runs and the statuses that decide them."""

from mergeyard.api import answers, presenting
from mergeyard.api import requests as r
from mergeyard.api.addressing import Addressing, repository_not_found
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import Presenter, encode
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import later
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.errors import Code, Refused
from mergeyard.service.service import Service

ACCEPTED = encode(answers.StatusAccepted())


class RunEndpoints:
    def __init__(self, service: Service, presenter: Presenter) -> None:
        self._service = service
        self._presenter = presenter
        self._addressing = Addressing(service.sites)

    async def details(self, call: Call) -> bytes:
        asked: r.GetMergeQueueTestingDetails = call.request
        key = self._addressing.queue(call)
        view = await self._service.runs.show(key, asked.test_run_id)
        return encode(self._presenter.run(key.repo, view))

    async def results(self, call: Call) -> bytes:
        asked: r.ListMergeQueueTestingResults = call.request
        until = later(self._service.clock.now(), 1) if not isinstance(asked.until, int) else asked.until
        key = self._addressing.queue(call)
        page, total = await self._service.runs.results(key, asked.since, until, asked.offset, asked.take)
        return encode(answers.TestingResults(testing_results=tuple(map(presenting.result, page)), total_items=total))

    async def report_status(self, call: Call) -> bytes:
        asked: r.ReportCommitStatus = call.request
        repo = self._addressing.visible_repo(call, asked.repo.repo)
        host = self._service.sites.host(repo.host)
        if host.checks_from is not ChecksFrom.API:
            words = f'{repo.host} runs its checks itself: set `checks = "api"` for it to report statuses.'
            raise Refused(Code.HOST_NOT_ALLOWED, words)
        if not await host.knows(repo):
            raise repository_not_found(repo)
        status = Status(
            context=asked.context,
            state=StatusState(asked.state),
            at=self._service.clock.now(),
            url=asked.url or "",
            description=asked.description or "",
        )
        await self._service.statuses.report(repo, Sha(asked.sha), status, call.repeat, ACCEPTED, call.token.id)
        return ACCEPTED
