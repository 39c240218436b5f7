-- Old processes may keep running: only adds a table and triggers.

-- Access tokens revoked one by one (RFC 7009). A row lives as long as its token would have.
create table revoked_tokens (
  tenant_id uuid not null references tenants (id) on delete cascade,
  -- The jti.
  id uuid not null,
  revoked_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, id)
);
create index revoked_tokens_ended on revoked_tokens (expires_at);
alter table revoked_tokens enable row level security;
alter table revoked_tokens force row level security;
create policy tenant on revoked_tokens
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- As in 0004: every process hears of it at the commit.
create trigger revoked_tokens_standing after insert on revoked_tokens
  for each row execute function svc_announce_standing();
create trigger refresh_families_standing after update of revoked_at on refresh_families
  for each row execute function svc_announce_standing();
