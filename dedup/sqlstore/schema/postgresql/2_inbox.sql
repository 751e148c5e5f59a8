CREATE TABLE IF NOT EXISTS {inbox} (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- order of arrival
    id          text COLLATE "C" NOT NULL,     -- consumer, '#', the event's key
    consumer    text COLLATE "C" NOT NULL,
    event_id    text COLLATE "C" NOT NULL,
    source      text COLLATE "C" NOT NULL DEFAULT '',
    event_type  text COLLATE "C" NOT NULL DEFAULT '',
    group_id    text COLLATE "C" NOT NULL DEFAULT '', -- '': in no group
    message_id  text COLLATE "C" NOT NULL DEFAULT '',
    payload     bytea NOT NULL,                -- the message's body
    attributes  text NOT NULL DEFAULT '{}',    -- JSON
    received_at bigint NOT NULL,               -- milliseconds of the epoch, as all times here
    status      text COLLATE "C" NOT NULL,     -- PENDING, DONE or PARKED
    attempts    integer NOT NULL DEFAULT 0,
    owner       text COLLATE "C" NOT NULL DEFAULT '',
    lease_until bigint NOT NULL DEFAULT 0,     -- 0: not at work
    due_at      bigint NOT NULL DEFAULT 0,     -- not before
    expires_at  bigint NOT NULL,               -- end of retention of a row that is done
    error       text NOT NULL DEFAULT '',      -- the last failure, at most 256 bytes
    CONSTRAINT {index}inbox_id UNIQUE (id)
);

CREATE INDEX IF NOT EXISTS {index}inbox_pending ON {inbox} (consumer, due_at, seq) WHERE status = 'PENDING';

CREATE INDEX IF NOT EXISTS {index}inbox_group ON {inbox} (consumer, group_id, seq) WHERE status <> 'DONE';

CREATE INDEX IF NOT EXISTS {index}inbox_expires_at ON {inbox} (expires_at) WHERE status = 'DONE';
