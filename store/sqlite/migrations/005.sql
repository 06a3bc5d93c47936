-- Tombstones that a purge left lie many in a row: item n of the list was
-- removed at the revision first + n. A later record or tombstone of that item
-- counts instead of it.
CREATE TABLE burial (
  vault INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  first INTEGER NOT NULL CHECK (first BETWEEN 1 AND last),
  last  INTEGER NOT NULL,
  items TEXT    NOT NULL, -- a JSON list
  PRIMARY KEY (vault, first)
) WITHOUT ROWID, STRICT;

-- How many rows of burial a vault has: one that a damaged page hides is missed.
ALTER TABLE vault ADD COLUMN burials INTEGER NOT NULL DEFAULT 0;
