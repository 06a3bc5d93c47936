-- What the store was made with. One row.
CREATE TABLE meta (
  only       INTEGER PRIMARY KEY CHECK (only = 1),
  store      BLOB NOT NULL CHECK (length(store) = 16),
  cursor_key BLOB NOT NULL CHECK (length(cursor_key) = 32)
) STRICT;

-- AUTOINCREMENT: an id is never used again, so nothing that belonged to a
-- deleted vault can turn up in a later one.
CREATE TABLE vault (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  account  TEXT    NOT NULL,
  node     TEXT    NOT NULL,
  epoch    BLOB    NOT NULL CHECK (length(epoch) = 10),
  config   TEXT    NOT NULL,
  created  INTEGER NOT NULL, -- Unix milliseconds
  revision INTEGER NOT NULL, -- of the creation or the latest configuration
  pruned   INTEGER NOT NULL DEFAULT 0, -- the highest tombstone that was forgotten
  UNIQUE (account, node)
) STRICT;

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

-- An id has either a record or a tombstone, or neither.
CREATE TABLE tombstone (
  vault    INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  revision INTEGER NOT NULL,
  item     TEXT    NOT NULL,
  PRIMARY KEY (vault, revision)
) WITHOUT ROWID, STRICT;

-- The first revision that each run of the service committed in a vault.
CREATE TABLE run (
  vault INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  first INTEGER NOT NULL,
  run   INTEGER NOT NULL,
  PRIMARY KEY (vault, first)
) WITHOUT ROWID, STRICT;

-- Earlier epochs of a vault, each with the last revision of the shared history.
CREATE TABLE lineage (
  vault INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  epoch BLOB    NOT NULL CHECK (length(epoch) = 10),
  fork  INTEGER NOT NULL,
  PRIMARY KEY (vault, epoch)
) WITHOUT ROWID, STRICT;

-- Epochs of deleted vaults, without the account.
CREATE TABLE ended_epoch (
  epoch BLOB PRIMARY KEY CHECK (length(epoch) = 10)
) WITHOUT ROWID, STRICT;

CREATE TABLE subscription (
  vault   INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  account TEXT    NOT NULL,
  PRIMARY KEY (vault, account)
) WITHOUT ROWID, STRICT;

-- Who is what to a vault, beside its owner, who has no row.
CREATE TABLE affiliation (
  vault       INTEGER NOT NULL REFERENCES vault (id) ON DELETE CASCADE,
  account     TEXT    NOT NULL,
  affiliation INTEGER NOT NULL CHECK (affiliation BETWEEN 1 AND 3), -- outcast, member, publisher
  PRIMARY KEY (vault, account)
) WITHOUT ROWID, STRICT;

-- An account that leaves takes these with it, wherever they are.
CREATE INDEX affiliation_by_account ON affiliation (account);
CREATE INDEX subscription_by_account ON subscription (account);

-- What clients that announce a verified hash can do.
CREATE TABLE capability (
  hash  TEXT    PRIMARY KEY,
  nodes TEXT    NOT NULL, -- a JSON list
  sync  INTEGER NOT NULL CHECK (sync IN (0, 1)),
  used  INTEGER NOT NULL -- Unix milliseconds
) WITHOUT ROWID, STRICT;

-- Resources that sent directed presence. owners: a JSON list of accounts;
-- vaults: a JSON list of objects with account and node; caps: a capability's
-- hash or nothing.
CREATE TABLE resource (
  account TEXT    NOT NULL,
  name    TEXT    NOT NULL,
  address TEXT    NOT NULL,
  seen    INTEGER NOT NULL, -- Unix milliseconds
  owners  TEXT    NOT NULL,
  vaults  TEXT    NOT NULL,
  caps    TEXT    NOT NULL,
  PRIMARY KEY (account, name)
) WITHOUT ROWID, STRICT;

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

-- A small vault as version 3 wrote it.
PRAGMA application_id = 1885696118;
PRAGMA user_version = 3;
PRAGMA journal_mode = WAL;
INSERT INTO meta VALUES (1, CAST('a store of ours!' AS BLOB), CAST('0123456789abcdef0123456789abcdef' AS BLOB));
INSERT INTO vault VALUES (7, 'alice@example.org', 'notes', CAST('epoch-0001' AS BLOB),
  '{"title":"Notes","type":"urn:example:note","max_items":9,"evict_oldest":true,"send_last":2,"key_version_floor":3,"mute_retract":true,"mute_delete":true,"mute_config":true,"mute_payloads":true,"mute_all":true}',
  1770000000000, 1, 4);
INSERT INTO run VALUES (7, 1, 5), (7, 5, 77);
INSERT INTO record VALUES
  (7 << 16 | 0, 7, 'a', 2, 3, 1, 'alice@example.org', 1770000000001, 1, CAST('sealed' AS BLOB)),
  (7 << 16 | 2, 7, 'c', 5, 0, 2, 'bob@example.org', 1770000000002, 0, CAST('<x xmlns="y"/>' AS BLOB));
INSERT INTO tombstone VALUES (7, 6, 'b');
INSERT INTO lineage VALUES (7, CAST('epoch-0000' AS BLOB), 0);
INSERT INTO ended_epoch VALUES (CAST('epoch-9999' AS BLOB));
INSERT INTO subscription VALUES (7, 'bob@example.org');
INSERT INTO affiliation VALUES (7, 'bob@example.org', 3), (7, 'carol@example.org', 2), (7, 'eve@example.org', 1);
INSERT INTO capability VALUES ('sha-1:AAAA', '[]', 0, 1770000000003), ('sha-256:BBBB', '["notes"]', 1, 1770000000004);
INSERT INTO resource VALUES
  ('alice@example.org', 'phone', 'alice@example.org/phone', 1770000000000, '["alice@example.org"]',
    '[{"account":"alice@example.org","node":"notes"}]', 'sha-256:BBBB'),
  ('bob@example.org', 'desk', 'bob@example.org/desk', 1770000000000, '["alice@example.org","bob@example.org"]', '[]', '');
INSERT INTO batch VALUES
  (3, 7, 'alice@example.org', 'open', 4, 1770000000005, 2, 8, 0, '', ''),
  (4, 7, 'bob@example.org', 'done', 0, 1770000000006, 0, 0, 1, 'before', 'after');
INSERT INTO staged VALUES
  (8, 3, 'a', 0, 4, CAST('epoch-0001' AS BLOB), 6, 1, CAST('resealed' AS BLOB)),
  (9, 3, 'c', 1, 0, CAST('epoch-0001' AS BLOB), 6, 0, x'');
