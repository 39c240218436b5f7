-- Old processes may keep running: connections that they end are revoked at the provider as before.

-- Set for a deleted connector. Its connections end in batches, then the row goes.
alter table vault_connectors add column removed_at timestamptz;
create index vault_connectors_removed on vault_connectors (removed_at) where removed_at is not null;

create index vault_connections_ended on vault_connections (updated_at)
  where status in ('denied', 'expired', 'revoked');

-- Tokens that wait to be revoked at their provider. A row goes with the answer, or after less than a day.
create table vault_revocations (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  connector_id uuid not null,
  -- The credential for which secret and token were sealed. It may have ended.
  credential_id uuid not null,
  secret bytea not null,
  secret_stamp bytea,
  token bytea,
  token_stamp bytea,
  tries integer not null default 0,
  due_at timestamptz not null,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);
create index vault_revocations_due on vault_revocations (due_at);
create index vault_revocations_of_connector on vault_revocations (tenant_id, connector_id);

alter table vault_revocations enable row level security;
alter table vault_revocations force row level security;
create policy tenant on vault_revocations using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
