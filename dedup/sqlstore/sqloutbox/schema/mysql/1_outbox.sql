CREATE TABLE IF NOT EXISTS {outbox_schema} (
    version    int NOT NULL PRIMARY KEY,
    applied_at bigint NOT NULL -- milliseconds of the epoch
) ENGINE = InnoDB;

-- Only events that are not yet confirmed are here. The names are those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS {outbox} (
    seq           bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, -- the order of a group; never used again
    aggregatetype varchar(64) NOT NULL,                 -- the outbox
    aggregateid   varchar(128) NOT NULL,                -- the group
    id            mediumtext NOT NULL,                  -- the event's ID
    source        varchar(64) NOT NULL,                 -- the publisher's namespace
    type          mediumtext NOT NULL,                  -- the event's type; '': none
    payload       mediumtext NOT NULL,                  -- the message's body
    attributes    mediumtext NOT NULL,                  -- JSON
    trace         mediumtext NOT NULL,                  -- the trace header; '': none
    created_at    bigint NOT NULL,                      -- milliseconds of the epoch, as all times here
    parked        varchar(8) NOT NULL DEFAULT '',       -- HALT or SKIP; '': not parked
    error         varchar(256) NOT NULL DEFAULT '',     -- why it is parked, at most 256 bytes
    parked_at     bigint NOT NULL DEFAULT 0,
    owner         varchar(64) NOT NULL DEFAULT '',      -- of the claim, on the group's first row
    lease_until   bigint NOT NULL DEFAULT 0,            -- end of the claim
    KEY {index}outbox_group (aggregatetype, aggregateid, seq),
    KEY {index}outbox_parked (aggregatetype, parked, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What writers of a group lock. A lock row that is made on demand is a deadlock for those who make it at once.
CREATE TABLE IF NOT EXISTS {outbox_locks} (
    stripe int NOT NULL PRIMARY KEY -- 0 to 4095
) ENGINE = InnoDB;

INSERT IGNORE INTO {outbox_locks} (stripe)
WITH RECURSIVE digits (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM digits WHERE n < 15)
SELECT a.n * 256 + b.n * 16 + c.n FROM digits a, digits b, digits c;
