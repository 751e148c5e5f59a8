CREATE TABLE IF NOT EXISTS {outbox_schema} (
    version    INTEGER PRIMARY KEY,
    applied_at INTEGER NOT NULL -- milliseconds of the epoch
);

-- Only events that are not yet confirmed are here. The names are those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS {outbox} (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of a group; never used again
    aggregatetype TEXT NOT NULL,                     -- the outbox
    aggregateid   TEXT NOT NULL,                     -- the group
    id            TEXT NOT NULL,                     -- the event's ID
    source        TEXT NOT NULL,                     -- the publisher's namespace
    type          TEXT NOT NULL,                     -- the event's type; '': none
    payload       TEXT NOT NULL,                     -- the message's body
    attributes    TEXT NOT NULL,                     -- JSON
    trace         TEXT NOT NULL,                     -- the trace header; '': none
    created_at    INTEGER NOT NULL,                  -- milliseconds of the epoch, as all times here
    parked        TEXT NOT NULL DEFAULT '',          -- HALT or SKIP; '': not parked
    error         TEXT NOT NULL DEFAULT '',          -- why it is parked, at most 256 bytes
    parked_at     INTEGER NOT NULL DEFAULT 0,
    owner         TEXT NOT NULL DEFAULT '',          -- not used: writers take turns
    lease_until   INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS {index}outbox_group ON {outbox} (aggregatetype, aggregateid, seq);

CREATE INDEX IF NOT EXISTS {index}outbox_parked ON {outbox} (aggregatetype, seq) WHERE parked <> '';
