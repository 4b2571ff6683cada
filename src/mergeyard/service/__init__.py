"""The service coordinates: it turns requests, webhooks and observations into events, asks the engine, and commits.

The way of an event:

1. A caller (API handler, worker, poller, comment listener) submits events to the `QueueActor` of the queue. It is the
   only writer of that queue in this process.
2. The actor takes everything that waits, calls `engine.decide` once, and commits the result in one transaction
   (`persistence` encodes what changed). With several replicas the commit is a compare-and-swap on the version of the
   queue; on `VersionConflict` the actor loads the newer queue and decides again.
3. It answers the callers, then notifies its listeners: the `worker` (runs `pending_tasks`), `Wakeups` (decides again
   at `wake_at`), local and forge checks, live pages, and the `ReplicaBus`.

Modules by topic:

- requests: `submissions`, `queues`, `submission_queries`, `views`, `pull_request_details`, `runs`, `idempotency`,
  `tokens`, `sessions`, `audit_log`, `errors`
- state: `queue_actor`, `registry`, `persistence`, `impacted_targets`
- work: `worker`, `tasks/`, `poller`, `pull_request_reader`, `forge_events`, `statuses`, `check_sources`,
  `merge_audit/`, `retention`, `background`
- replicas: `leases`, `replica`, `replica_bus`
- announcements: `comments/`, `webhooks/`
- reports: `analytics`, `metrics`, `whatif`, `forecasts`

`service.Service` creates and connects all of them.
"""
