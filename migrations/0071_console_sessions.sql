-- Old processes may keep running: only adds a table.

-- Sessions of the console (docs/guides/operations/console.md). The tokens of a session and an action that waits for a
-- fresh second factor are sealed.
create table console_sessions (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  token_sha256 bytea not null unique,
  subject text not null,
  tokens_sealed bytea not null,
  scopes text[] not null,
  access_until timestamptz not null,
  pending_sealed bytea,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, id)
);
create index console_sessions_ended on console_sessions (expires_at);

alter table console_sessions enable row level security;
alter table console_sessions force row level security;
create policy tenant on console_sessions
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
