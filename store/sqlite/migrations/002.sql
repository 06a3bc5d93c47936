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

-- A resource may now be present for others' vaults and subscribe to them.
ALTER TABLE resource RENAME TO resource_1;

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

-- A list without nodes was also written as null.
INSERT INTO resource (account, name, address, seen, owners, vaults, caps)
  SELECT account, name, address, seen, json_array(account),
    (SELECT json_group_array(json_object('account', r.account, 'node', n.value) ORDER BY n.value)
      FROM json_each(r.nodes) n WHERE n.type = 'text'),
    ''
  FROM resource_1 r;

DROP TABLE resource_1;
