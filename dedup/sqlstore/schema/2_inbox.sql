CREATE TABLE IF NOT EXISTS {inbox} (
    seq         {numbered},                          -- order of arrival
    id          {string 2048} NOT NULL,              -- consumer, '#', the event's key
    consumer    {string 64} NOT NULL,
    event_id    {string 2048} NOT NULL,
    source      {string 2048} NOT NULL DEFAULT '',
    event_type  {string 2048} NOT NULL DEFAULT '',
    group_id    {string 128} NOT NULL DEFAULT '',    -- '': in no group
    message_id  {string 128} NOT NULL DEFAULT '',
    payload     {blob} NOT NULL,                     -- the message's body
    attributes  {string} NOT NULL,                   -- JSON
    received_at bigint NOT NULL,                     -- milliseconds of the epoch, as all times here
    status      {string 16} NOT NULL,                -- PENDING, DONE or PARKED
    attempts    integer NOT NULL DEFAULT 0,
    owner       {string 255} NOT NULL DEFAULT '',
    lease_until bigint NOT NULL DEFAULT 0,           -- 0: not at work
    due_at      bigint NOT NULL DEFAULT 0,           -- not before
    expires_at  bigint NOT NULL,                     -- end of retention of a row that is done
    error       {string 256} NOT NULL DEFAULT '',    -- the last failure
    CONSTRAINT {index}inbox_id UNIQUE (id)
) {table};

CREATE INDEX IF NOT EXISTS {index}inbox_pending ON {inbox} (consumer, [status, ]due_at, seq) WHERE status = 'PENDING';

CREATE INDEX IF NOT EXISTS {index}inbox_group ON {inbox} (consumer, group_id, [status, ]seq) WHERE status <> 'DONE';

CREATE INDEX IF NOT EXISTS {index}inbox_expires_at ON {inbox} ([status, ]expires_at) WHERE status = 'DONE';
