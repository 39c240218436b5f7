-- Old processes may keep running: only adds tables.

-- Providers at which people connect accounts.
create table vault_connectors (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  template text,
  client_id text not null,
  -- Null: a public client.
  client_secret_sealed bytea,
  client_secret_sealed_stamp bytea,
  authorization_endpoint text not null,
  token_endpoint text not null,
  revocation_endpoint text,
  issuer text,
  scopes text[] not null,
  allowed_hosts text[] not null,
  auth_scheme text not null,
  pkce boolean not null,
  token_endpoint_auth_method text not null,
  authorization_parameters jsonb not null,
  -- {url, pointer}
  account_label jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index vault_connectors_listed on vault_connectors (tenant_id, created_at desc, id desc);
create unique index vault_connectors_name on vault_connectors (tenant_id, name);

alter table vault_connectors enable row level security;
alter table vault_connectors force row level security;
create policy tenant on vault_connectors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Accounts of people at these providers, and the requests to connect them.
create table vault_connections (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  connector_id uuid not null,
  -- The name of the connector at the request: the connector may be deleted.
  connector text not null,
  user_id uuid not null,
  subject text not null,
  requester_type text not null check (requester_type in ('agent', 'service')),
  requester_id text not null,
  -- Gets the grant.
  agent_id uuid,
  status text not null check (status in ('pending', 'active', 'needs_reauthorization', 'denied', 'expired', 'revoked')),
  scopes text[] not null,
  reason text,
  return_to text,
  -- Limits of the grant.
  max_bytes bigint,
  grant_expires_at timestamptz,
  account_label text,
  credential_id uuid,
  grant_id uuid,
  -- The open request. Null: none.
  code text,
  code_expires_at timestamptz,
  polled_at timestamptz,
  -- The redirect that is under way.
  state_sha256 bytea check (length(state_sha256) = 32),
  session_id uuid,
  verifier_sealed bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index vault_connections_listed on vault_connections (tenant_id, created_at desc, id desc);
create index vault_connections_of_subject on vault_connections (tenant_id, subject, agent_id);
create index vault_connections_of_connector on vault_connections (tenant_id, connector_id);
create index vault_connections_of_credential on vault_connections (tenant_id, credential_id) where credential_id is not null;
create index vault_connections_of_grant on vault_connections (tenant_id, grant_id) where grant_id is not null;
create unique index vault_connections_code on vault_connections (code) where code is not null;
create unique index vault_connections_state on vault_connections (state_sha256) where state_sha256 is not null;
create index vault_connections_open on vault_connections (code_expires_at) where status = 'pending';

alter table vault_connections enable row level security;
alter table vault_connections force row level security;
create policy tenant on vault_connections using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
