-- Old processes may keep running: only adds tables. What they send is not counted.

-- Invitations by address, over all tenants: so many a day, and so long between two of them. Global: the
-- address is a SHA-256 of its lower case, so that the rows alone name no person.
create table mail_address_shares (
  address_sha256 bytea primary key check (length(address_sha256) = 32),
  day date not null,
  letters integer not null check (letters > 0),
  last_at timestamptz not null
);
create index mail_address_shares_age on mail_address_shares (day);

-- Letters of a tenant by day.
create table mail_tenant_shares (
  tenant_id uuid not null references tenants (id) on delete cascade,
  day date not null,
  letters integer not null check (letters > 0),
  primary key (tenant_id, day)
);
create index mail_tenant_shares_age on mail_tenant_shares (day);

alter table mail_address_shares enable row level security;
alter table mail_address_shares force row level security;
create policy crossing on mail_address_shares
  using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
alter table mail_tenant_shares enable row level security;
alter table mail_tenant_shares force row level security;
create policy tenant on mail_tenant_shares
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
