-- Old processes may keep running: they neither read nor write these tables, and the trigger only deletes rows of them.

-- SCIM provisioning (RFC 7643, RFC 7644).

-- Bearer tokens of directories. They are valid below /scim/v2 only.
create table scim_tokens (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  organization_id uuid references organizations (id),
  description text check (char_length(description) <= 255),
  -- The roles above member that the token may give and take.
  roles text[] not null default '{}' check (roles <@ array['admin', 'owner']),
  created_at timestamptz not null,
  expires_at timestamptz,
  primary key (tenant_id, id)
);
create index scim_tokens_listed on scim_tokens (tenant_id, created_at desc, id desc);
alter table scim_tokens enable row level security;
alter table scim_tokens force row level security;
create policy tenant on scim_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- What a directory says about a user, beyond the columns of tenant_users. A user without a row was not provisioned.
create table scim_users (
  tenant_id uuid not null,
  user_id uuid not null,
  user_name text not null check (char_length(user_name) between 1 and 320),
  user_name_key text not null check (user_name_key = lower(user_name)),
  external_id text check (char_length(external_id) between 1 and 1024),
  attributes jsonb not null default '{}' check (pg_column_size(attributes) <= 262144),
  updated_at timestamptz not null,
  primary key (tenant_id, user_id),
  constraint scim_users_user_name unique (tenant_id, user_name_key),
  foreign key (tenant_id, user_id) references tenant_users (tenant_id, id) on delete cascade
);
create index scim_users_external_id on scim_users (tenant_id, external_id) where external_id is not null;
alter table scim_users enable row level security;
alter table scim_users force row level security;
create policy tenant on scim_users using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- A removed user frees the name, whichever operation removes the user.
create function svc_scim_user_removed() returns trigger language plpgsql as $$
begin
  delete from scim_users where tenant_id = new.tenant_id and user_id = new.id;
  return null;
end
$$;
create trigger tenant_users_scim after update of status on tenant_users
  for each row when (new.status = 'removed' and old.status <> 'removed') execute function svc_scim_user_removed();
