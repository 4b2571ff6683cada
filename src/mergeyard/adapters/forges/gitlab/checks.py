"""Reads the jobs, pipelines and commit statuses of a commit, and reports our own status."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import CHECK_STATE_BY_STATUS_STATE, Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES
from mergeyard.domain.timestamps import Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostRefused, HostUnavailable

PIPELINE = "pipeline"
"""The name of the check for all pipelines together, and the suite of their jobs."""
SKIPPED = "skipped"
MANUAL = "manual"
FAILED_STATES = ("failed", "canceled", "canceling")
STATES = {
    "success": StatusState.SUCCESS,
    SKIPPED: StatusState.SKIPPED,
    **dict.fromkeys(FAILED_STATES, StatusState.FAILURE),
}
WORST_FIRST = (
    StatusState.FAILURE,
    StatusState.PENDING,
    StatusState.SUCCESS,
    StatusState.NEUTRAL,
    StatusState.SKIPPED,
)
"""Skipped is last: a pipeline with one successful and one skipped job is successful."""
OWN_NAMES = (ids.STATUS_CONTEXT, PIPELINE)
UNTESTED_MESSAGE = "The pipeline was skipped, so nothing was tested: remove [skip ci] from the commit messages."


class PipelineResult(Struct, frozen=True):
    pipeline: wire.Pipeline
    state: StatusState
    is_skipped: bool
    message: str = ""


async def evaluate_pipelines(
    client: ForgeClient,
    pipelines: Sequence[wire.Pipeline],
    reported: Sequence[wire.CommitStatus],
    refs: Iterable[str],
) -> Mapping[int, PipelineResult]:
    """Results by pipeline id, without pipelines that contain nothing but our own status. `refs` are tested by them."""
    results = [result for pipeline in pipelines if (result := evaluate_pipeline(pipeline, reported))]
    if any(result.is_skipped for result in results) and not await _can_be_skipped(client, refs):
        untested = {"state": StatusState.FAILURE, "message": UNTESTED_MESSAGE}
        results = [replace(result, **untested) if result.is_skipped else result for result in results]
    return {result.pipeline.id: result for result in results}


async def _can_be_skipped(client: ForgeClient, refs: Iterable[str]) -> bool:
    """Never on a test branch, whatever the project allows: the queue merges only what was tested there."""
    if any(ref.startswith(ids.TEST_BRANCH_PREFIX) for ref in refs):
        return False
    return bool((await client.read_repository(wire.Project)).allow_merge_on_skipped_pipeline)


def select_counting(
    pipelines: Mapping[int, PipelineResult], test_branch: str, draft: int | None
) -> list[PipelineResult]:
    """The latest pipelines of each ref: a branch and a merge request can both have a pipeline for the same commit.
    Of a test branch, every result counts, also one that was skipped, but nothing that ran elsewhere. An external one
    never counts: every Developer can create it by reporting a status."""
    own = {id_: result for id_, result in pipelines.items() if not result.pipeline.is_external}
    if test_branch:
        own = {id_: result for id_, result in own.items() if result.pipeline.belongs_to(test_branch, draft)}
    latest = {own[id_].pipeline.ref: own[id_] for id_ in sorted(own)}
    if test_branch:
        return list(latest.values())
    return [result for result in latest.values() if not result.is_skipped] or list(latest.values())


def summarize_pipelines(counting: Sequence[PipelineResult]) -> list[Status]:
    """The worst result."""
    worst = min(counting, key=lambda result: WORST_FIRST.index(result.state), default=None)
    if worst is None:
        return []
    at = to_instant(worst.pipeline.updated_at or worst.pipeline.created_at)
    url, message = worst.pipeline.web_url, worst.message
    return [Status(context=PIPELINE, state=worst.state, at=at, url=url, description=message, suite=PIPELINE)]


def derive_job_state(status: wire.CommitStatus) -> StatusState:
    """A failed job that is allowed to fail is neutral: its pipeline passes."""
    if status.allow_failure and status.status in FAILED_STATES:
        return StatusState.NEUTRAL
    return _decode_state(status.status)


def evaluate_pipeline(pipeline: wire.Pipeline, reported: Sequence[wire.CommitStatus]) -> PipelineResult | None:
    """Our own status is part of a pipeline, which then waits for us while we wait for it. So if it contains our status,
    its state is derived from the other jobs and statuses; also if GitLab does not show its state. A job that is allowed
    to fail has to finish, too.

    Old GitLab versions do not return the pipeline of a status: then it counts for every pipeline.
    """
    members = [status for status in reported if status.pipeline_id in (pipeline.id, None)]
    others = [status for status in members if status.name != ids.STATUS_CONTEXT]
    if pipeline.status and len(others) == len(members):
        return PipelineResult(pipeline, _decode_state(pipeline.status), is_skipped=pipeline.status == SKIPPED)
    counting = (derive_job_state(status) for status in others if not _is_optional(status))
    state = min(counting, key=WORST_FIRST.index, default=None)
    is_skipped = all(status.status == SKIPPED for status in others)
    return None if state is None else PipelineResult(pipeline, state, is_skipped=is_skipped)


def _is_optional(status: wire.CommitStatus) -> bool:
    """Whether its pipeline does not wait until a user starts it."""
    return status.allow_failure and status.status == MANUAL


def _derive_pipelines(reported: Iterable[wire.CommitStatus]) -> list[wire.Pipeline]:
    """The pipelines that these statuses belong to, without a state of their own. Without CI/CD, all are external."""
    found = dict[int, wire.Pipeline]()
    for status in reported:
        id_ = status.pipeline_id or 0
        found[id_] = wire.Pipeline(
            id=id_, ref=status.ref, status="", source=wire.EXTERNAL_SOURCE, created_at=status.created_at
        )
    return list(found.values())


def _decode_state(name: str) -> StatusState:
    return STATES.get(name, StatusState.PENDING)


SUCCESS = "success"
PENDING = "pending"
RUNNING = "running"
CANCELED = "canceled"
GITLAB_STATES = {
    StatusState.PENDING: PENDING,
    StatusState.SUCCESS: SUCCESS,
    StatusState.SKIPPED: SUCCESS,
    StatusState.NEUTRAL: SUCCESS,
    StatusState.FAILURE: "failed",
    StatusState.ERROR: SKIPPED,
}
"""An error means that a pull request was taken out of the queue. Users can still merge it themselves, so our status
must not make the pipeline of its head fail. It must not make one succeed either that tested nothing. `_post_status`
has the states for old versions, which do not know `skipped`."""
MAX_DESCRIPTION_CHARS = 255
MAX_URL_CHARS = 255
MAX_REMEMBERED = 10_000
DRAFTS_QUERY = {"state": "all", "scope": "created_by_me", "order_by": "created_at", "sort": "desc", "per_page": 100}


K = TypeVar("K")
V = TypeVar("V")


class Checks(ForgeHost):
    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._status_refs = OrderedDict[tuple[Repo, Sha], str | None]()
        self._drafts = OrderedDict[tuple[Repo, Sha], int]()
        self._next_draft_searches = OrderedDict[tuple[Repo, Sha], Instant]()
        self._parents = OrderedDict[int, Sequence[str]]()
        """Of the commits of merged results, by the id of the pipeline."""
        self._tests_merged_results = dict[Repo, bool]()

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:  # noqa: ARG002
        """GitLab has no required checks by name, only the setting that the pipeline must succeed."""
        project = await self._read_settings(await self._client_for(repo), repo)
        return (PIPELINE,) if project.only_allow_merge_if_pipeline_succeeds else ()

    async def statuses(self, repo: Repo, sha: Sha, branch: str, test_branch: str = "") -> Sequence[Status]:
        client = await self._client_for(repo)
        if repo not in self._tests_merged_results:
            await self._read_settings(client, repo)
        reported = await list_commit_statuses(client, sha)
        listed = await _list_pipelines(client, sha)
        shows_request = any(pipeline.ref.startswith(wire.MERGE_REQUEST_REFS) for pipeline in listed or ())
        needs_draft = self._tests_merged_results[repo] or (test_branch and shows_request)
        if (repo, sha) not in self._drafts and needs_draft:
            await self._search_draft(client, repo, sha, branch)
        draft = self._drafts.get((repo, sha))
        if listed is None:
            derived, refs = _derive_pipelines(reported), {status.ref for status in reported}
            return _combine(reported, await evaluate_pipelines(client, derived, reported, refs), {}, [])
        return await self._read_statuses(client, sha, reported, listed, test_branch, draft)

    async def _search_draft(self, client: ForgeClient, repo: Repo, sha: Sha, branch: str) -> None:
        """At most once per poll interval: a test branch can have no draft, and webhooks can ask for many reads."""
        now = self._clock.now()
        if now < self._next_draft_searches.get((repo, sha), now):
            return
        draft = await _find_draft(client, sha, branch)
        remember(self._next_draft_searches, (repo, sha), later(now, self.poll_interval_ms))
        if draft is not None:
            remember(self._drafts, (repo, sha), draft)

    def _remember_draft(self, repo: Repo, opened: wire.MergeRequest) -> None:
        """Only if pipelines test merged results. Otherwise the pipelines of the commit are all there is to read."""
        if opened.sha is not None and self._tests_merged_results.get(repo):
            remember(self._drafts, (repo, Sha(opened.sha)), opened.iid)

    async def _read_statuses(
        self,
        client: ForgeClient,
        sha: Sha,
        reported: list[wire.CommitStatus],
        listed: list[wire.Pipeline],
        test_branch: str,
        draft: int | None,
    ) -> Sequence[Status]:
        """Also those of the pipeline that tests the merged result of the draft, which has a commit of its own."""
        if draft is not None and (merged := await self._find_merged_result(client, sha, draft)):
            reported += await list_commit_statuses(client, Sha(merged.sha))
            listed.append(merged)
        is_test = bool(test_branch) or draft is not None
        refs = [ids.TEST_BRANCH_PREFIX] if is_test else [pipeline.ref for pipeline in listed]
        pipelines = await evaluate_pipelines(client, listed, reported, refs)
        others = {status.pipeline_id for status in reported if status.name not in OWN_NAMES}
        counting = select_counting(pipelines, test_branch, draft)
        return _combine(reported, pipelines, await _read_jobs(client, others, pipelines), counting)

    async def _find_merged_result(self, client: ForgeClient, sha: Sha, draft: int) -> wire.Pipeline | None:
        """The newest pipeline that tests a merge of this commit. Others test what users pushed to the test branch."""
        found = await client.get(f"/merge_requests/{draft}/pipelines", list[wire.Pipeline], {"per_page": 100}) or []
        for pipeline in sorted(found, key=lambda pipeline: pipeline.id, reverse=True):
            if pipeline.tests_merged_result and sha in await self._read_parents(client, pipeline):
                return pipeline
        return None

    async def _read_parents(self, client: ForgeClient, pipeline: wire.Pipeline) -> Sequence[str]:
        """Nothing for a commit that GitLab does not have."""
        if pipeline.id not in self._parents:
            commit = await client.get(f"/repository/commits/{quote_segment(pipeline.sha)}", wire.Commit)
            if commit is None:
                return ()
            remember(self._parents, pipeline.id, commit.parent_ids)
        return self._parents[pipeline.id]

    async def set_status(self, repo: Repo, sha: Sha, status: Status, *, urgent: bool = False) -> None:
        """Nothing is sent for the head of a fork, which shows no pipeline of this project. A head that was not read
        since the start is unknown: then GitLab chooses the pipeline, the latest one of the commit."""
        ref = self._status_refs.get((repo, sha), "")
        if ref is not None:
            client = await self._client_for(repo)
            reported = await list_commit_statuses(client, sha, name=status.context, urgent=urgent)
            await report_status(client, sha, status, find_own_status(reported), ref, urgent=urgent)

    def _remember_status_ref(self, repo: Repo, head: Sha, ref: str | None) -> None:
        remember(self._status_refs, (repo, head), ref)

    async def _read_settings(self, client: ForgeClient, repo: Repo) -> wire.Project:
        """The queue asks for the required checks every minute, which also keeps the remembered setting current."""
        project = await client.read_repository(wire.Project)
        self._tests_merged_results[repo] = bool(project.merge_pipelines_enabled)
        return project


def remember(values: OrderedDict[K, V], key: K, value: V) -> None:
    values[key] = value
    values.move_to_end(key)
    if len(values) > MAX_REMEMBERED:
        values.popitem(last=False)


async def _find_draft(client: ForgeClient, sha: Sha, branch: str) -> int | None:
    """The merge request that shows the test branch of this commit. It can be closed already."""
    drafts = await client.get("/merge_requests", list[wire.MergeRequest], {**DRAFTS_QUERY, "target_branch": branch})
    matching = (draft for draft in drafts or () if draft.sha == sha)
    return next((draft.iid for draft in matching if draft.source_branch.startswith(ids.TEST_BRANCH_PREFIX)), None)


def _combine(
    reported: Iterable[wire.CommitStatus],
    pipelines: Mapping[int, PipelineResult],
    jobs: Mapping[int, wire.Job],
    counting: Sequence[PipelineResult],
) -> Sequence[Status]:
    others = (status for status in reported if status.name not in OWN_NAMES)
    statuses = (_to_status(status, pipelines, jobs) for status in _select_latest(others, jobs))
    return [*_select_worst_per_name(statuses), *summarize_pipelines(counting)]


async def _list_pipelines(client: ForgeClient, sha: Sha) -> list[wire.Pipeline] | None:
    """None if CI/CD is switched off: GitLab shows only what others report."""
    try:
        return await client.get_all("/pipelines", list[wire.Pipeline], {"sha": sha, "per_page": 100})
    except HostRefused:
        return None


async def list_commit_statuses(
    client: ForgeClient, sha: Sha, *, name: str | None = None, urgent: bool = False
) -> list[wire.CommitStatus]:
    path, query = f"/repository/commits/{quote_segment(sha)}/statuses", {"name": name} if name else {}
    return await client.get_all(path, list[wire.CommitStatus], {**query, "per_page": 100}, urgent=urgent)


def find_own_status(reported: Iterable[wire.CommitStatus]) -> wire.CommitStatus | None:
    own = (status for status in reported if status.name == ids.STATUS_CONTEXT)
    return max(own, key=lambda status: status.id, default=None)


async def report_status(
    client: ForgeClient, sha: Sha, status: Status, own: wire.CommitStatus | None, ref: str = "", *, urgent: bool
) -> bool:
    """Changes our status where it is, so that it is not left behind in one pipeline when a second one starts. False if
    GitLab changed nothing."""
    description = status.description[:MAX_DESCRIPTION_CHARS]
    pipeline = own.pipeline_id if own else None
    body = {
        "name": status.context,
        "description": description,
        "target_url": status.url if len(status.url) <= MAX_URL_CHARS else "",
        "pipeline_id": pipeline,
        "ref": "" if pipeline else own.ref if own else ref,
    }
    sent = {name: value for name, value in body.items() if value}
    planned = _plan_states(GITLAB_STATES[status.state], description, own)
    return any([await _post_status(client, sha, {**sent, "state": state}, urgent=urgent) for state in planned])


def _plan_states(wanted: str, description: str, own: wire.CommitStatus | None) -> Sequence[str]:
    """The states to report, one after another. GitLab stores a description only together with a change of the state,
    and a status that runs cannot become pending or skipped: it is canceled first, and the next one replaces it."""
    if own is None or own.status not in (PENDING, RUNNING):
        is_known = own is not None and (own.status, own.description or "") == (wanted, description)
        return [] if is_known else [wanted]
    if wanted == PENDING and description == (own.description or ""):
        return []
    if wanted == PENDING and own.status == PENDING:
        return [RUNNING]
    return [CANCELED, wanted] if own.status == RUNNING and wanted in (PENDING, SKIPPED) else [wanted]


async def _post_status(client: ForgeClient, sha: Sha, body: Mapping[str, str | int], *, urgent: bool) -> bool:
    """Old versions do not know `skipped`. There, `success` leaves the result of a pipeline to its other jobs and
    statuses. In a pipeline that tested nothing, it would itself be the result, and `canceled` makes none succeed."""
    path = f"/statuses/{quote_segment(sha)}"
    reply = await client.send("POST", path, body, urgent=urgent)
    if reply.status == 400 and body["state"] == SKIPPED and b"valid value" in reply.body:
        body = {**body, "state": SUCCESS if await _has_tests(client, sha, body, urgent=urgent) else CANCELED}
        reply = await client.send("POST", path, body, urgent=urgent)
    if reply.status == 400 and "target_url" in body and b"target_url" in reply.body:
        body = {name: value for name, value in body.items() if name != "target_url"}
        reply = await client.send("POST", path, body, urgent=urgent)
    if reply.status == 409:
        raise HostUnavailable(f"{reply.url} answered 409: {reply.detail}")
    is_already_set = reply.status == 400 and b"Cannot transition status" in reply.body
    if not is_already_set:
        # GitLab answers 404 if no branch of the project contains the commit.
        reply.raise_for_status(allowed=(404,))
    return reply.is_success


async def _has_tests(client: ForgeClient, sha: Sha, body: Mapping[str, str | int], *, urgent: bool) -> bool:
    """Whether the pipeline of our status, or the ref if that is all we know, has a job or status that decides."""
    listed = await list_commit_statuses(client, sha, urgent=urgent)
    others = (status for status in listed if status.name != ids.STATUS_CONTEXT and not _is_optional(status))
    return any(
        status.status != SKIPPED
        and body.get("pipeline_id") in (None, status.pipeline_id)
        and body.get("ref") in (None, status.ref)
        for status in others
    )


async def _read_jobs(
    client: ForgeClient, pipeline_ids: Collection[int | None], pipelines: Collection[int]
) -> Mapping[int, wire.Job]:
    """Jobs by id. GitLab draws the ids of jobs and of reported statuses from one sequence, so an id tells them apart.

    The status itself does not: its reporter chooses the `target_url`, and a job can have none.
    """
    # Old GitLab versions do not return the pipeline of a status: then it can be any of them.
    wanted = {*pipeline_ids, *pipelines} if None in pipeline_ids else {*pipeline_ids}
    jobs = list[wire.Job]()
    for pipeline in sorted(pipeline for pipeline in wanted if pipeline is not None):
        path = f"/pipelines/{pipeline}"
        jobs += await client.get_all(f"{path}/jobs", list[wire.Job], {"include_retried": "true", "per_page": 100})
        jobs += await client.get_all(f"{path}/bridges", list[wire.Job], {"per_page": 100})
    return {job.id: job for job in jobs}


def _select_latest(reported: Iterable[wire.CommitStatus], jobs: Mapping[int, wire.Job]) -> Iterable[wire.CommitStatus]:
    """The latest per name and ref: the pipelines of a branch and of a merge request do not replace each other."""
    by_age = sorted(reported, key=lambda status: status.id)
    return {(status.name, status.ref, status.id in jobs): status for status in by_age}.values()


def _select_worst_per_name(statuses: Iterable[Status]) -> Iterable[Status]:
    """A failure on one ref is not outweighed by a success on another."""
    worst_last = sorted(statuses, key=lambda status: WORST_FIRST.index(status.state), reverse=True)
    return {status.context: status for status in worst_last}.values()


def _to_status(
    status: wire.CommitStatus, pipelines: Mapping[int, PipelineResult], jobs: Mapping[int, wire.Job]
) -> Status:
    job = jobs.get(status.id)
    return Status(
        context=status.name,
        state=_derive_state(status, pipelines),
        at=to_instant(status.finished_at or status.started_at or status.created_at),
        url=(job.web_url if job else status.target_url) or "",
        description=status.description or "",
        suite=PIPELINE if job else "",
    )


def _derive_state(status: wire.CommitStatus, pipelines: Mapping[int, PipelineResult]) -> StatusState:
    """GitLab skips jobs that are not needed, but also all jobs after a failure: the pipeline's state tells which."""
    if status.status != SKIPPED:
        return derive_job_state(status)
    states = [result.state for result in pipelines.values() if status.pipeline_id in (result.pipeline.id, None)]
    worst = min(states, key=WORST_FIRST.index, default=StatusState.PENDING)
    return StatusState.SKIPPED if CHECK_STATE_BY_STATUS_STATE[worst] in SATISFIED_CHECK_STATES else worst
