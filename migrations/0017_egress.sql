-- Old processes may keep running: only adds columns with defaults.

-- What calls through the egress proxy have taken of a grant's limits. Bytes are taken before they
-- flow and what was not needed is put back, so that parallel calls never use more than there is.
alter table vault_grants
  add column requests_used bigint not null default 0,
  add column bytes_used bigint not null default 0,
  add constraint vault_grants_requests_within check (requests_used between 0 and max_requests),
  add constraint vault_grants_bytes_within check (bytes_used between 0 and max_bytes);
