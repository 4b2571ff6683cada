-- Lists count and page in the index alone: `tested` is how many pull requests a run tests.
ALTER TABLE runs ADD COLUMN tested BIGINT NOT NULL DEFAULT 0;

-- The commit that a started run tests, which its statuses are reported for.
ALTER TABLE runs ADD COLUMN tip TEXT COLLATE "C";

-- When a submission or a run left its queue. Retention counts from here.
ALTER TABLE stays ADD COLUMN ended_at BIGINT;
ALTER TABLE runs ADD COLUMN ended_at BIGINT;

-- The highest version of the records of a queue that were deleted: who knows only an older one must load it as a whole.
ALTER TABLE queues ADD COLUMN deleted_up_to BIGINT NOT NULL DEFAULT 0;

CREATE INDEX journal_by_time ON journal (at);

-- What had ended before this form counts as ended with the last entry of the journal.
UPDATE stays SET ended_at = coalesce((SELECT max(at) FROM journal), submitted_at) WHERE NOT live;
UPDATE runs SET ended_at = coalesce((SELECT max(at) FROM journal), decided_at, started_at, 0) WHERE NOT live;
UPDATE runs SET
    tested = coalesce((convert_from(body, 'UTF8')::json ->> 'tests')::bigint, 0),
    tip = CASE WHEN started_at IS NOT NULL THEN convert_from(body, 'UTF8')::json -> 'chain' -> -1 ->> 'commit' END
WHERE substring(body FROM 1 FOR 1) = '{';

DROP INDEX runs_decided;
CREATE INDEX runs_decided ON runs (queue, decided_at, place) INCLUDE (tested)
WHERE started_at IS NOT NULL AND decided_at IS NOT NULL;
CREATE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_by_tip ON runs (tip) WHERE tip IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX stays_ended ON stays (ended_at) WHERE ended_at IS NOT NULL;

-- Runs that passed and whose records were deleted: commits on a branch may still name them.
CREATE TABLE deleted_runs (
    queue TEXT COLLATE "C" NOT NULL REFERENCES queues,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, id)
);

-- The token that uploaded them, whose quota they count against.
ALTER TABLE targets ADD COLUMN token TEXT COLLATE "C";
CREATE INDEX targets_by_token ON targets (token) WHERE token IS NOT NULL;
CREATE INDEX targets_by_age ON targets (at);

-- The token that reported a status for a commit which no run tested then; NULL once a run is known to test it.
ALTER TABLE statuses ADD COLUMN unclaimed_by TEXT COLLATE "C";
UPDATE statuses SET unclaimed_by = '' WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.tip = statuses.sha);
CREATE INDEX statuses_unclaimed ON statuses (unclaimed_by, at) WHERE unclaimed_by IS NOT NULL;
CREATE INDEX statuses_unclaimed_by_age ON statuses (at) WHERE unclaimed_by IS NOT NULL;
