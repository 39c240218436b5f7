-- Old processes may keep running: only adds a column, which they do not read.

-- The oldest build that may run on the schema of a migration, as the number of the newest migration of that build. The
-- runner records it for each file that it applies (docs/guides/operations/upgrade.md#roll-back). Every file before this one
-- permits all builds.
alter table svc_migrations add column if not exists oldest_build integer;
update svc_migrations set oldest_build = 0 where oldest_build is null;
