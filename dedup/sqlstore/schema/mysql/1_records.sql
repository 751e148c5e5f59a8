CREATE TABLE IF NOT EXISTS {schema} (
    version    int NOT NULL PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
) ENGINE = InnoDB;

-- Texts are bytes: no collation takes two keys for one, no character set refuses a character, and a blank at the end counts.
CREATE TABLE IF NOT EXISTS {records} (
    id          varbinary(2048) NOT NULL PRIMARY KEY, -- consumer, '#', the event's key
    status      varbinary(16) NOT NULL,               -- INPROGRESS or COMPLETED
    owner       varbinary(255) NOT NULL,              -- the delivery attempt; stays after a release
    fence       bigint NOT NULL,                      -- grows with every owner
    lease_until bigint NOT NULL,                      -- milliseconds of the epoch; 0: released
    lease_length bigint NOT NULL DEFAULT 0,            -- how long the lease was when it was written, in milliseconds
    expires_at  bigint NOT NULL,                      -- end of retention, milliseconds of the epoch
    receive_count int NOT NULL,                       -- receive count at the last acquire
    error       varbinary(256) NOT NULL DEFAULT '',   -- the last failure
    validation  varbinary(255) NOT NULL DEFAULT '',   -- hash of the payload, where used
    result      mediumblob,                           -- what dedup.Do replays
    KEY {index}records_expires_at (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
