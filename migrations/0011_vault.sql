-- Old processes may keep running: only adds tables.

-- Credentials of third parties, and SSH authorities: used for their owners, shown to nobody.
create table vault_credentials (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  owner_type text not null check (owner_type in ('human', 'agent', 'service')),
  owner_id text not null,
  provider text not null,
  credential_type text not null
    check (credential_type in ('oauth2', 'api_key', 'ssh_key', 'ssh_ca', 'custom')),
  label text not null,
  -- bearer, basic, header:<name>, query:<key>; none for ssh_ca.
  auth_scheme text not null,
  allowed_hosts text[] not null,
  non_exportable boolean not null,
  status text not null default 'active' check (status in ('active', 'revoked')),
  metadata jsonb not null,
  -- Sealed under the tenant's data key and bound to this row. Gone with the revocation.
  secret bytea,
  -- Of an ssh_ca: the line for TrustedUserCAKeys.
  ca_public_key text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, id),
  check ((status = 'revoked') = (secret is null)),
  check ((status = 'revoked') = (revoked_at is not null)),
  check ((credential_type = 'ssh_ca') = (ca_public_key is not null))
);
create index vault_credentials_listed on vault_credentials (tenant_id, created_at desc, id desc);

-- Who may use a credential, and what it looked like when that was decided.
create table vault_grants (
  tenant_id uuid not null,
  id uuid not null,
  credential_id uuid not null,
  grantee_type text not null check (grantee_type in ('agent', 'delegation')),
  grantee_id text not null,
  capabilities text[] not null check (capabilities <@ array['list', 'use', 'sign']),
  -- credential_type, auth_scheme, allowed_hosts, non_exportable when it was granted.
  snapshot jsonb not null,
  methods text[],
  path_prefixes text[],
  max_requests bigint check (max_requests > 0),
  max_bytes bigint check (max_bytes > 0),
  expires_at timestamptz,
  created_at timestamptz not null,
  revoked_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, credential_id) references vault_credentials (tenant_id, id)
    on delete cascade
);
create index vault_grants_listed on vault_grants
  (tenant_id, credential_id, created_at desc, id desc);
create index vault_grants_of_grantee on vault_grants (tenant_id, grantee_type, grantee_id)
  where revoked_at is null;

-- A grant to an agent with a budget of bytes.
create table vault_leases (
  tenant_id uuid not null,
  id uuid not null,
  credential_id uuid not null,
  recipient_id text not null,
  snapshot jsonb not null,
  byte_budget bigint not null check (byte_budget > 0),
  bytes_used bigint not null default 0 check (bytes_used between 0 and byte_budget),
  expires_at timestamptz,
  created_at timestamptz not null,
  revoked_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, credential_id) references vault_credentials (tenant_id, id)
    on delete cascade
);
create index vault_leases_listed on vault_leases
  (tenant_id, credential_id, created_at desc, id desc);
create index vault_leases_of_recipient on vault_leases (tenant_id, recipient_id)
  where revoked_at is null;

-- Certificates that an authority signed, until they have expired: what a revocation list may name.
create table ssh_certificates (
  tenant_id uuid not null,
  credential_id uuid not null,
  -- Unsigned, 64 bits, not 0.
  serial numeric(20) not null check (serial between 1 and 18446744073709551615),
  agent_id text not null,
  key_id text not null,
  target_host text not null,
  principals text[] not null,
  -- The authority's key of that moment: a rotated authority has signed with more than one.
  ca_public_key text not null,
  issued_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  primary key (tenant_id, credential_id, serial),
  foreign key (tenant_id, credential_id) references vault_credentials (tenant_id, id)
    on delete cascade
);
create index ssh_certificates_expiry on ssh_certificates (expires_at);
create index ssh_certificates_revoked on ssh_certificates (tenant_id, credential_id)
  where revoked_at is not null;

do $$
declare
  protected text;
begin
  foreach protected in array
    array['vault_credentials', 'vault_grants', 'vault_leases', 'ssh_certificates'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
