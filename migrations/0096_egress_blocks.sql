-- Old processes may keep running: only adds a table and triggers. An old process records each call before it sends it.

-- Each row lets one process send up to calls_max calls of a grant or lease that it has not recorded yet. The process
-- removes its rows when it stops. A row that is not renewed belonged to a process that was killed.
create table egress_blocks (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  credential_id uuid not null,
  authority_id uuid not null,
  agent_id text,
  delegation_id text,
  calls_max integer not null check (calls_max > 0),
  opened_at timestamptz not null default statement_timestamp(),
  renewed_at timestamptz not null default statement_timestamp(),
  primary key (tenant_id, id)
);
create index egress_blocks_renewed on egress_blocks (renewed_at);
alter table egress_blocks enable row level security;
alter table egress_blocks force row level security;
create policy tenant on egress_blocks using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Processes keep what a caller may use for less than a second, and drop it when a change is announced. The payload is
-- the tenant. 0102 announces through svc_announce, which does not exist yet.
create function svc_announce_egress() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_egress', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$$;
create trigger vault_grants_announced after insert or update of revoked_at or delete on vault_grants
  for each row execute function svc_announce_egress();
create trigger vault_leases_announced after insert or update of revoked_at or delete on vault_leases
  for each row execute function svc_announce_egress();
create trigger vault_credentials_announced after update of status, secret, allowed_hosts or delete on vault_credentials
  for each row execute function svc_announce_egress();
