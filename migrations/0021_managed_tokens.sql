-- Old processes may keep running: only adds a table.

-- Access tokens that an upstream gave for an oauth2 credential, and who is asking for the next one.
create table vault_managed_tokens (
  tenant_id uuid not null,
  credential_id uuid not null,
  -- Sealed under the tenant's data key and bound to this row; null until the first one.
  token bytea,
  obtained_at timestamptz,
  -- Null where the upstream does not say.
  expires_at timestamptz,
  -- How the upstream takes the client's secret, once that is known.
  client_auth text check (client_auth in ('basic', 'post')),
  -- Whoever holds this asks the upstream; the others wait for the outcome.
  refresher uuid,
  refreshing_until timestamptz,
  -- The outcome of the last attempt when there was none to be had, kept until `retry_at`.
  failure jsonb,
  retry_at timestamptz,
  primary key (tenant_id, credential_id),
  foreign key (tenant_id, credential_id) references vault_credentials (tenant_id, id)
    on delete cascade,
  check ((token is null) = (obtained_at is null)),
  check ((refresher is null) = (refreshing_until is null)),
  check ((failure is null) = (retry_at is null))
);

alter table vault_managed_tokens enable row level security;
alter table vault_managed_tokens force row level security;
create policy tenant on vault_managed_tokens
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
