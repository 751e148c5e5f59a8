CREATE TABLE IF NOT EXISTS {inbox} (
    seq         bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, -- order of arrival
    id          varbinary(2048) NOT NULL,                   -- consumer, '#', the event's key
    consumer    varbinary(64) NOT NULL,
    event_id    varbinary(2048) NOT NULL,
    source      varbinary(2048) NOT NULL DEFAULT '',
    event_type  varbinary(2048) NOT NULL DEFAULT '',
    group_id    varbinary(128) NOT NULL DEFAULT '',         -- '': in no group
    message_id  varbinary(128) NOT NULL DEFAULT '',
    payload     mediumblob NOT NULL,                        -- the message's body
    attributes  mediumblob NOT NULL,                        -- JSON
    received_at bigint NOT NULL,                            -- milliseconds of the epoch, as all times here
    status      varbinary(16) NOT NULL,                     -- PENDING, DONE or PARKED
    attempts    int NOT NULL DEFAULT 0,
    owner       varbinary(255) NOT NULL DEFAULT '',
    lease_until bigint NOT NULL DEFAULT 0,                  -- 0: not at work
    due_at      bigint NOT NULL DEFAULT 0,                  -- not before
    expires_at  bigint NOT NULL,                            -- end of retention of a row that is done
    error       varbinary(256) NOT NULL DEFAULT '',         -- the last failure
    UNIQUE KEY {index}inbox_id (id),
    KEY {index}inbox_pending (consumer, status, due_at, seq),
    KEY {index}inbox_group (consumer, group_id, status, seq),
    KEY {index}inbox_expires_at (status, expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
