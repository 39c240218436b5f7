-- Old processes may keep running: new ones take the advisory locks of old ones too.

-- A row is locked for the length of a transaction (storage/platform/portable/locks.ts). The migrations lock a row before
-- this table is theirs to create, so it can exist.
create table if not exists locks (
  key text primary key
);
