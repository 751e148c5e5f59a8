CREATE TABLE IF NOT EXISTS {inbox} (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
    id          TEXT NOT NULL UNIQUE,              -- consumer, '#', the event's key
    consumer    TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    source      TEXT NOT NULL DEFAULT '',
    event_type  TEXT NOT NULL DEFAULT '',
    group_id    TEXT NOT NULL DEFAULT '',          -- '': in no group
    message_id  TEXT NOT NULL DEFAULT '',
    payload     BLOB NOT NULL,                     -- the message's body
    attributes  TEXT NOT NULL DEFAULT '{}',        -- JSON
    received_at INTEGER NOT NULL,                  -- milliseconds of the epoch, as all times here
    status      TEXT NOT NULL,                     -- PENDING, DONE or PARKED
    attempts    INTEGER NOT NULL DEFAULT 0,
    owner       TEXT NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,        -- 0: not at work
    due_at      INTEGER NOT NULL DEFAULT 0,        -- not before
    expires_at  INTEGER NOT NULL,                  -- end of retention of a row that is done
    error       TEXT NOT NULL DEFAULT ''           -- the last failure, at most 256 bytes
);

CREATE INDEX IF NOT EXISTS {index}inbox_pending ON {inbox} (consumer, due_at, seq) WHERE status = 'PENDING';

CREATE INDEX IF NOT EXISTS {index}inbox_group ON {inbox} (consumer, group_id, seq) WHERE status <> 'DONE';

CREATE INDEX IF NOT EXISTS {index}inbox_expires_at ON {inbox} (expires_at) WHERE status = 'DONE';
