-- Old processes may keep running: only adds nullable columns and a table. An old process does not enforce the limits.

-- Null: the limit of the deployment ([organizations]).
alter table organizations
  add column max_members integer check (max_members > 0),
  add column max_tenants integer check (max_tenants > 0),
  add column invitation_ttl_secs integer check (invitation_ttl_secs > 0);

-- Of an invitation. Null: it does not expire (members, and invitations from before this column).
alter table organization_members add column expires_at timestamptz;

-- The offer of an owner to move a tenant to another organization, and what became of it.
create table tenant_transfers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  from_organization_id uuid not null references organizations (id) on delete cascade,
  to_organization_id uuid not null references organizations (id) on delete cascade,
  status text not null check (status in ('pending', 'accepted', 'canceled', 'declined', 'expired')),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  decided_at timestamptz,
  primary key (tenant_id, id),
  unique (id),
  check (from_organization_id <> to_organization_id)
);
-- A tenant has at most one open offer.
create unique index tenant_transfers_pending on tenant_transfers (tenant_id) where status = 'pending';
create index tenant_transfers_from on tenant_transfers (from_organization_id, created_at desc, id desc);
create index tenant_transfers_to on tenant_transfers (to_organization_id, created_at desc, id desc);

alter table tenant_transfers enable row level security;
alter table tenant_transfers force row level security;
create policy tenant on tenant_transfers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
