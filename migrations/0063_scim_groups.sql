-- Old processes may keep running: they neither read nor write the table.

-- SCIM groups: each is a role of the tenant under a name. Its members are the users with the role.
create table scim_groups (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  display_name text not null check (char_length(display_name) between 1 and 255),
  display_name_key text not null check (display_name_key = lower(display_name)),
  role text not null check (role ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'),
  external_id text check (char_length(external_id) between 1 and 1024),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  constraint scim_groups_display_name unique (tenant_id, display_name_key),
  constraint scim_groups_role unique (tenant_id, role)
);
alter table scim_groups enable row level security;
alter table scim_groups force row level security;
create policy tenant on scim_groups using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
