-- Old processes may keep running: only adds columns and a table.

-- What a certificate was issued under, and the key that it certifies: by these it is revoked.
alter table ssh_certificates
  add column grant_id uuid,
  add column delegation_id uuid,
  add column public_key text,
  add column revoked_reason text;

-- What hosts poll of an SSH certificate authority. Made with the first request.
create table ssh_authorities (
  tenant_id uuid not null,
  credential_id uuid not null,
  -- Signs the list and the CA keys. It outlives rotations, and the end of the authority.
  list_public_key text not null,
  list_private_sealed bytea not null,
  -- OpenSSH lines of keys that no certificate may have.
  revoked_keys text[] not null default '{}',
  -- The last list: a digest of what it revokes, and its version, which only grows.
  list_digest text,
  list_version bigint not null default 0,
  created_at timestamptz not null,
  primary key (tenant_id, credential_id),
  foreign key (tenant_id, credential_id) references vault_credentials (tenant_id, id) on delete cascade
);
alter table ssh_authorities enable row level security;
alter table ssh_authorities force row level security;
create policy tenant on ssh_authorities using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
