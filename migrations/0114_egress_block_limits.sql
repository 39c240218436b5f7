-- Old processes may keep running: only adds columns that may be null. An old process opens blocks without limits.

-- What a block has taken from the limits of its grant or lease and what is not accounted for yet. Null: the grant or
-- lease does not limit it.
alter table egress_blocks
  add column requests_held bigint check (requests_held >= 0),
  add column bytes_held bigint check (bytes_held >= 0);
