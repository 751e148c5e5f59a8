CREATE TABLE IF NOT EXISTS {outbox_schema} (
    version    integer PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
);

-- Only events that are not yet confirmed are here. The names are those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS {outbox} (
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of a group; the sequence's cache must stay 1
    aggregatetype text COLLATE "C" NOT NULL,            -- the outbox
    aggregateid   text COLLATE "C" NOT NULL,            -- the group
    id            text COLLATE "C" NOT NULL,            -- the event's ID
    source        text COLLATE "C" NOT NULL,            -- the publisher's namespace
    type          text NOT NULL,                        -- the event's type; '': none
    payload       text NOT NULL,                        -- the message's body
    attributes    text NOT NULL,                        -- JSON
    trace         text NOT NULL,                        -- the trace header; '': none
    created_at    bigint NOT NULL,                      -- milliseconds of the epoch, as all times here
    parked        text COLLATE "C" NOT NULL DEFAULT '', -- HALT or SKIP; '': not parked
    error         text NOT NULL DEFAULT '',             -- why it is parked, at most 256 bytes
    parked_at     bigint NOT NULL DEFAULT 0,
    owner         text COLLATE "C" NOT NULL DEFAULT '', -- of the claim, on the group's first row
    lease_until   bigint NOT NULL DEFAULT 0             -- end of the claim
);

CREATE INDEX IF NOT EXISTS {index}outbox_group ON {outbox} (aggregatetype, aggregateid, seq);

CREATE INDEX IF NOT EXISTS {index}outbox_parked ON {outbox} (aggregatetype, seq) WHERE parked <> '';
