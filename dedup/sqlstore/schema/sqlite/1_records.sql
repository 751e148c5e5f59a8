CREATE TABLE IF NOT EXISTS {schema} (
    version    INTEGER NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL -- milliseconds of the epoch
);

CREATE TABLE IF NOT EXISTS {records} (
    id          TEXT NOT NULL PRIMARY KEY,  -- consumer, '#', the event's key
    status      TEXT NOT NULL,              -- INPROGRESS or COMPLETED
    owner       TEXT NOT NULL,              -- the delivery attempt; stays after a release
    fence       INTEGER NOT NULL,           -- grows with every owner
    lease_until INTEGER NOT NULL,           -- milliseconds of the epoch; 0: released
    lease_length INTEGER NOT NULL DEFAULT 0,  -- how long the lease was when it was written, in milliseconds
    expires_at  INTEGER NOT NULL,           -- end of retention, milliseconds of the epoch
    receive_count INTEGER NOT NULL,         -- receive count at the last acquire
    error       TEXT NOT NULL DEFAULT '',   -- the last failure, at most 256 bytes
    validation  TEXT NOT NULL DEFAULT '',   -- hash of the payload, where used
    result      BLOB                        -- what dedup.Do replays
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS {index}records_expires_at ON {records} (expires_at);
