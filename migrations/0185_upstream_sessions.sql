-- Old processes may keep running: only adds columns and indexes. A logout token ends the sessions that they open too.

-- The user and the session at the identity provider that opened a session: its logout tokens name them. Null: the provider
-- named no session, or an older process opened this one.
alter table browser_sessions
  add column upstream_subject text,
  add column upstream_sid text;
create index browser_sessions_upstream on browser_sessions (provider, upstream_sid) where upstream_sid is not null;

-- A logout token comes with the id of its provider alone.
create index sso_providers_by_id on sso_providers (id);
