-- Old processes may keep running: the same rows are found by the session alone.

-- A family is found by its tenant and id. This one began with the tenant as well, and on a young table,
-- of which nothing is known, it seemed as good: all families of the tenant were read.
drop index refresh_families_of_session;
create index refresh_families_of_session on refresh_families (session_id);
