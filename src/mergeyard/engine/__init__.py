"""The engine: one pure function that makes every decision of the queue.

    decide(queue, events, now) -> Decision      # engine/decide.py
    pending_tasks(queue) -> tuple[Task, ...]    # engine/tasks.py

`decide` gets the queue as it is known, the events since the last decision and the time. It returns the queue as it
should be, with the journal entries, the refused requests and `wake_at`, the time at which to decide again. It reads no
clock and performs no I/O, so that a lost, repeated or late message, a crash between any two steps, and two replicas at
once are harmless: the next decision starts from the same facts and comes to the same result.

Terms
-----
A *submission* is one pull request from submit to its end. A *batch* is a group of submissions that are tested together;
one alone is a batch of one. The *active batches* are tested now or are about to merge, in order. A *run* is one test of
one batch on one *stack*: all pull requests of the test branch, those ahead first, then the batch itself. The *chain* is
the commits of the stack, one *step* per pull request, starting at the *base*, which ends at the *tip*. A run *is valid*
while its base, stack and required checks are what would be merged now. In parallel mode a batch depends only on batches
ahead that share an impacted target; batches that depend on each other form a *lane*. A *slot* is one of `concurrency`
runs. A *base run* tests the target branch alone. A *landing* is one move of the target branch.

Example
-------
Concurrency is 3, and batches hold one pull request. A, B and C are submitted:

    main <- A              run 1 tests A
    main <- A <- B         run 2 tests B on top of A
    main <- A <- B <- C    run 3 tests C on top of A and B

- All pass: one landing moves the target branch to the tip of run 3. Its chain reuses the commits of runs 1 and 2, so
  landing A first would have been a fast-forward for the others.
- B fails while A still runs: B is `pending_failure`, because A could be the cause. A passes and merges. Now everything
  else in B's stack has merged, and the base passed: B fails and leaves. Run 3 contained B, so it is no longer valid; C
  is tested again on the new tip.
- A fails: A leaves. Runs 2 and 3 contained A, so they are invalidated; B and C are tested again without A. B's earlier
  failure, if there was one, no longer counts.

Rules that every module relies on
---------------------------------
- Only what was tested merges: a landing consists of steps of a valid run that passed.
- A result counts for equal contents: with `directMergeMode`, the run of one pull request whose test commit has the same
  tree as its head takes the result of that head's checks, and lands like any other run.
- A pull request fails for a test only when its run failed, everything else in the run's stack has merged, and the base
  is known to pass: a base run passed on it, or it landed as tested. Otherwise the engine waits, retests, bisects, or
  starts a base run.
- States are derived, not set: modules change facts (where a submission is, which runs exist, what they found);
  `entries.derive_states` then computes the states from them and writes the journal.
- Work is derived, not queued: `pending_tasks` computes from the facts what the worker must do outside.
- A step that has nothing to do returns the identical queue object. That is how `decide` knows that it is done.

One decision
------------
1. *Record.* `decide` gives each event to the module that owns the fact: requests of users (`requests`), orders of
   operators (`queue_state`), observations of the Git host (`observations`), results of tasks (`results`). A request
   that cannot be carried out becomes a refusal and changes nothing. No pull request is judged or started here.
2. *Settle.* The steps below are tried in order. When one changes the queue, `decide` starts again with the first, until
   none changes anything. So each step can rely on everything that the steps before it establish.
3. *Derive states*, 4. *forget* facts that nothing refers to any more.

The steps, and why they are in this order:

1. `observations.expire_overdue` concludes submissions that were not ready for too long; marks runs whose time is
   over. Why here: time passes first, so every later step sees the same time.
2. `timeouts.update_running_clock` counts the time in which the queue is `RUNNING`. Why here: `not_ready` times out by
   this clock.
3. `admission.update_admitting_mode` opens admission, and admits pull requests that became ready while it was closed.
   Why here: decides who takes part in all steps below.
4. `scheduling.demote_untestable` makes pull requests not ready if the queue has no required checks. Why here: as
   above.
5. `admission.release_holds` ends holds whose blocker is gone. Why here: a released pull request can enter a batch
   below.
6. `admission.hold_batches_without_prerequisite` removes batches that contain a pull request which left the active
   batches. Why here: must not be tested, judged or merged.
7. `failures.discard_stale_runs` invalidates runs that no longer test what would be merged. Why here: every step below
   trusts the remaining runs.
8. `failures.revoke_clearances` retests batches whose clearing run behind them is gone. Why here: as above, for
   optimistic merging.
9. `speculation.cancel_unlikely_runs` cancels speculative runs that can hardly be needed any more. Why here: frees
   slots before they are assigned.
10. `run_lifecycle.cancel_unneeded_runs` cancels runs that no batch or bisection refers to. Why here: as above.
11. `queue_state.finish_mode_switch` ends SWITCHING_MODES when nothing is active. Why here: before anything new
   starts.
12. `preemption.place_urgent_batches` places urgent pull requests as far ahead as allowed. Why here: before slots are
   assigned.
13. `scheduling.start_clearing_runs` starts runs behind a failed batch that could clear it. Why here: before the
   failure is resolved, or the batch would never get that chance.
14. `bisection.advance_bisections` reads results of bisections, tests the next prefixes. Why here: bisections have
   their own slots.
15. `failures.resolve_failures` fails, bisects, retests, or waits for a base run. Why here: after every run that could
   still clear the batch was started.
16. `scheduling.start_runs` assigns free slots: base runs, active batches, waiting pull requests. Why here: after
   failed batches left, so that new stacks do not contain them.
17. `merging.choose_landing` chooses what lands, or commits to the landing that was read. Why here: last: only what is
   still valid after all steps above lands.

Modules
-------
Record: `decide`, `requests`, `queue_state`, `observations`, `results`. Who is in the queue: `admission`, `entries`,
`timeouts`. What is tested next: `preemption`, `batching`, `lanes`, `speculation`,
`pass_rate_model`, `scheduling`, `run_lifecycle`. What results mean: `run_validity`, `blame`, `failures`, `bisection`.
What merges: `merging`. What others read: `tasks`, `views`, `estimates`,
`timetable`.
"""
