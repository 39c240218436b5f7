-- Old processes may keep running: only adds a table. An old process does not evaluate policies.

-- Conditions of a tenant on sign-in and on the issue of tokens. Every policy that applies must permit.
create table access_policies (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null check (char_length(name) between 1 and 255),
  enabled boolean not null,
  actions text[] not null check (cardinality(actions) > 0 and actions <@ array['sign_in', 'token']),
  -- Empty: all applications and agents.
  client_ids text[] not null,
  -- Empty: tokens of all scopes, otherwise those with one of them.
  scopes text[] not null,
  -- Networks in CIDR notation.
  allowed_networks text[] not null,
  denied_networks text[] not null,
  -- Of users: 1, 2 or 3. Null: none.
  required_level smallint check (required_level between 1 and 3),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index access_policies_listed on access_policies (tenant_id, created_at desc, id desc);

-- Processes that remember the policies of a tenant hear of a change: the payload is the tenant.
create function svc_announce_policies() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_standing', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$$;
create trigger access_policies_standing after insert or update or delete on access_policies
  for each row execute function svc_announce_policies();

alter table access_policies enable row level security;
alter table access_policies force row level security;
create policy tenant on access_policies using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
