-- Old processes may keep running: only adds columns that may be null. An old process may give back bytes of a spent budget,
-- which this release does not use.

-- When the byte budget of a grant or lease has cut a call. It admits no other call.
alter table vault_grants add column spent_at timestamp with time zone;
alter table vault_leases add column spent_at timestamp with time zone;
