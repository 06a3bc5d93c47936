-- What is deleted is out of sight at once and leaves the file bit by bit
-- afterwards. Until then waste is 1, and there may be left:
--   of a vault without an account: everything;
--   of a vault: records up to the revision purged, tombstones up to pruned;
--   of a batch without an account, or with an outcome: what was staged.
ALTER TABLE vault ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE vault ADD COLUMN waste INTEGER NOT NULL DEFAULT 0 CHECK (waste IN (0, 1));
ALTER TABLE batch ADD COLUMN waste INTEGER NOT NULL DEFAULT 0 CHECK (waste IN (0, 1));

CREATE INDEX vault_waste ON vault (waste) WHERE waste = 1;
CREATE INDEX batch_waste ON batch (waste) WHERE waste = 1;

-- 1: the file holds nothing of what was deleted, and nobody has it open.
ALTER TABLE meta ADD COLUMN tidy INTEGER NOT NULL DEFAULT 0 CHECK (tidy IN (0, 1));
