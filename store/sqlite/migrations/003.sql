-- A record tells which revision a key rotation replaced. The payload stays
-- last.
ALTER TABLE record RENAME TO record_2;

-- id = vault << 16 | slot: the records of a vault lie side by side.
-- The payload stands last, so that a scan of the rest does not read it.
CREATE TABLE record (
  id           INTEGER PRIMARY KEY CHECK (id >> 16 = vault),
  vault        INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  item         TEXT    NOT NULL,
  revision     INTEGER NOT NULL,
  key_version  INTEGER NOT NULL,
  form         INTEGER NOT NULL,
  publisher    TEXT    NOT NULL,
  published    INTEGER NOT NULL, -- Unix milliseconds
  rotated_from INTEGER NOT NULL, -- a revision, or 0
  payload      BLOB    NOT NULL,
  UNIQUE (vault, item)
) STRICT;

INSERT INTO record (id, vault, item, revision, key_version, form, publisher, published, rotated_from, payload)
  SELECT id, vault, item, revision, key_version, form, publisher, published, 0, payload FROM record_2;

DROP TABLE record_2;

-- Changes of a vault that are to be made together; name is the id that the
-- account's device chose.
CREATE TABLE batch (
  id        INTEGER PRIMARY KEY,
  vault     INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  account   TEXT    NOT NULL, -- whose device began it
  name      TEXT    NOT NULL,
  rotate_to INTEGER NOT NULL, -- a key version, or 0
  expires   INTEGER NOT NULL, -- Unix milliseconds
  changes   INTEGER NOT NULL, -- rows in staged
  bytes     INTEGER NOT NULL, -- of their payloads
  outcome   INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 2), -- open, committed, aborted
  previous  TEXT    NOT NULL, -- of a committed one, the cursors around it
  cursor    TEXT    NOT NULL,
  UNIQUE (account, name)
) STRICT;

CREATE INDEX batch_by_vault ON batch (vault, account);
CREATE INDEX batch_by_expiry ON batch (expires);

-- The changes in open batches. epoch, held: of the cursor that each came with.
CREATE TABLE staged (
  id          INTEGER PRIMARY KEY,
  batch       INTEGER NOT NULL REFERENCES batch (id) ON DELETE CASCADE,
  item        TEXT    NOT NULL,
  gone        INTEGER NOT NULL CHECK (gone IN (0, 1)),
  key_version INTEGER NOT NULL,
  epoch       BLOB    NOT NULL CHECK (length(epoch) = 10),
  held        INTEGER NOT NULL,
  form        INTEGER NOT NULL,
  payload     BLOB    NOT NULL,
  UNIQUE (batch, item)
) STRICT;
