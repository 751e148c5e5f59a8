CREATE TABLE IF NOT EXISTS {outbox_schema} (
    version    integer NOT NULL PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
) {table};

-- Only events that are not yet confirmed are here. The names are those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS {outbox} (
    seq           {numbered},                       -- the order of a group; never used again; a sequence's cache must stay 1
    aggregatetype {text 64} NOT NULL,               -- the outbox
    aggregateid   {text 128} NOT NULL,              -- the group
    id            {text} NOT NULL,                  -- the event's ID
    source        {text 64} NOT NULL,               -- the publisher's namespace
    type          {text} NOT NULL,                  -- the event's type; '': none
    payload       {text} NOT NULL,                  -- the message's body
    attributes    {text} NOT NULL,                  -- JSON
    trace         {text} NOT NULL,                  -- the trace header; '': none
    created_at    bigint NOT NULL,                  -- milliseconds of the epoch, as all times here
    parked        {text 8} NOT NULL DEFAULT '',     -- HALT or SKIP; '': not parked
    error         {text 256} NOT NULL DEFAULT '',   -- why it is parked, at most 256 bytes
    parked_at     bigint NOT NULL DEFAULT 0,
    owner         {text 64} NOT NULL DEFAULT '',    -- of the claim, on the group's first row; not used where writers take turns
    lease_until   bigint NOT NULL DEFAULT 0         -- end of the claim
) {table};

CREATE INDEX IF NOT EXISTS {index}outbox_group ON {outbox} (aggregatetype, aggregateid, seq);

CREATE INDEX IF NOT EXISTS {index}outbox_parked ON {outbox} (aggregatetype, [parked, ]seq) WHERE parked <> '';

{lock tables}
