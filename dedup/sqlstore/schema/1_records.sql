CREATE TABLE IF NOT EXISTS {schema} (
    version    integer NOT NULL PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
) {table};

-- Texts are bytes: no collation takes two keys for one, no character set refuses a character, and a blank at the end counts.
CREATE TABLE IF NOT EXISTS {records} (
    id            {string 2048} NOT NULL PRIMARY KEY, -- consumer, '#', the event's key
    status        {string 16} NOT NULL,               -- INPROGRESS or COMPLETED
    owner         {string 255} NOT NULL,              -- the delivery attempt; stays after a release
    fence         bigint NOT NULL,                    -- grows with every owner
    lease_until   bigint NOT NULL,                    -- milliseconds of the epoch; 0: released
    lease_length  bigint NOT NULL DEFAULT 0,          -- of the lease when it was written, in milliseconds
    expires_at    bigint NOT NULL,                    -- end of retention, milliseconds of the epoch
    receive_count integer NOT NULL,                   -- receive count at the last acquire
    error         {string 256} NOT NULL DEFAULT '',   -- the last failure, or why the event was skipped
    note          {string 256} NOT NULL DEFAULT '',   -- an operator's, of the last reopen or complete
    validation    {string 255} NOT NULL DEFAULT '',   -- hash of the payload, where used
    result        {blob}                              -- what dedup.Do replays
) {keyed table};

CREATE INDEX IF NOT EXISTS {index}records_expires_at ON {records} (expires_at);
