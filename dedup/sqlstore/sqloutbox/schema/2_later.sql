-- Events that are added to the outbox when they are due.
CREATE TABLE IF NOT EXISTS {outbox_later} (
    aggregatetype {text 64} NOT NULL,               -- the outbox
    later_key     {text 64} NOT NULL,               -- SHA-256 of id in hexadecimal
    due_at        bigint NOT NULL,                  -- milliseconds of the epoch
    place         integer NOT NULL,                 -- among the events of its call
    aggregateid   {text 128} NOT NULL,              -- the columns of the outbox
    id            {text} NOT NULL,
    source        {text 64} NOT NULL,
    type          {text} NOT NULL,
    payload       {text} NOT NULL,
    attributes    {text} NOT NULL,
    trace         {text} NOT NULL,
    PRIMARY KEY (aggregatetype, later_key)
) {table};

CREATE INDEX IF NOT EXISTS {index}outbox_due ON {outbox_later} (aggregatetype, due_at, place, later_key);
