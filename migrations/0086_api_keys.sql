-- Old processes may keep running: only adds a table. An old process refuses API keys.

-- A long-lived secret of a tenant for its APIs. Only hashes of the secret are stored.
create table api_keys (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null check (char_length(name) between 1 and 255),
  scopes text[] not null check (cardinality(scopes) > 0),
  -- Networks in CIDR notation. Empty: any address.
  allowed_addresses text[] not null default '{}',
  -- Who made it. The key ends with them, and has at most the scopes that they have now.
  maker_type text not null check (maker_type in ('human', 'agent', 'service')),
  maker_id text not null,
  -- The key that made this key. Keys that a key made are deleted with it.
  parent_id uuid,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  -- The secret before the last rotation, and until when it is accepted.
  previous_sha256 bytea unique check (length(previous_sha256) = 32),
  previous_expires_at timestamptz,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  rotated_at timestamptz,
  -- Written at most once in five minutes by each process.
  last_used_at timestamptz,
  primary key (tenant_id, id),
  unique (id),
  foreign key (tenant_id, parent_id) references api_keys (tenant_id, id) on delete cascade,
  check ((previous_sha256 is null) = (previous_expires_at is null))
);
create index api_keys_listed on api_keys (tenant_id, created_at desc, id desc);
create index api_keys_of_parent on api_keys (tenant_id, parent_id) where parent_id is not null;
create index api_keys_expiring on api_keys (expires_at);

-- Processes that remember a key hear of its rotation and deletion.
create trigger api_keys_standing after update of token_sha256, previous_expires_at or delete on api_keys
  for each row execute function svc_announce_standing();

alter table api_keys enable row level security;
alter table api_keys force row level security;
create policy tenant on api_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
