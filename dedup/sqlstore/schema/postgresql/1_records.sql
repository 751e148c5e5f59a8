CREATE TABLE IF NOT EXISTS {schema} (
    version    integer PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
);

CREATE TABLE IF NOT EXISTS {records} (
    id          text COLLATE "C" PRIMARY KEY,  -- consumer, '#', the event's key
    status      text COLLATE "C" NOT NULL,     -- INPROGRESS or COMPLETED
    owner       text COLLATE "C" NOT NULL,     -- the delivery attempt; stays after a release
    fence       bigint NOT NULL,               -- grows with every owner
    lease_until bigint NOT NULL,               -- milliseconds of the epoch; 0: released
    lease_length bigint NOT NULL DEFAULT 0,     -- how long the lease was when it was written, in milliseconds
    expires_at  bigint NOT NULL,               -- end of retention, milliseconds of the epoch
    receive_count integer NOT NULL,            -- receive count at the last acquire
    error       text NOT NULL DEFAULT '',      -- the last failure, at most 256 bytes
    validation  text NOT NULL DEFAULT '',      -- hash of the payload, where used
    result      bytea                          -- what dedup.Do replays
);

CREATE INDEX IF NOT EXISTS {index}records_expires_at ON {records} (expires_at);
