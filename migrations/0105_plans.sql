-- Old processes may keep running: they read the same tables, and a trigger writes the new one.

-- Indexes for statements that read a whole table without them, and for rows that go with the row that they refer to.

-- The sessions of an account, of all tenants: for the removal of guests and of accounts.
create index browser_sessions_by_account on browser_sessions (account_id);

-- Lists of the control plane, newest first.
create index organizations_listed on organizations (created_at desc, id desc);
create index tenants_listed on tenants (created_at desc, id desc) where organization_id is not null;
create index organizations_made_in on organizations (made_in_tenant_id) where made_in_tenant_id is not null;
create index status_lists_listed on status_lists (created_at desc, id desc);
create index operator_invites_of_organization on operator_invites (organization_id);

-- Work of every minute, and of every few seconds.
create index webhooks_rotated on webhooks (previous_secret_expires_at)
  where previous_secret_expires_at is not null;
create index webhook_lanes_leased on webhook_lanes (lease) where lease is not null;

-- The origins that applications list, one row each. A browser names an origin and no tenant, and an index on the array
-- of an application is not used below row-level security, because the operator of arrays is not leakproof.
create table application_origins (
  tenant_id uuid not null,
  application_id uuid not null,
  origin text not null,
  primary key (tenant_id, application_id, origin),
  foreign key (tenant_id, application_id) references applications (tenant_id, id) on delete cascade
);
create index application_origins_by_origin on application_origins (origin);
alter table application_origins enable row level security;
alter table application_origins force row level security;
create policy tenant on application_origins
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- A trigger, so that processes of the release before write the rows too.
create function svc_application_origins() returns trigger language plpgsql as $$
begin
  delete from application_origins
  where tenant_id = new.tenant_id and application_id = new.id and origin <> all (new.allowed_origins);
  insert into application_origins (tenant_id, application_id, origin)
  select distinct new.tenant_id, new.id, o from unnest(new.allowed_origins) o
  on conflict do nothing;
  return null;
end
$$;
create trigger applications_origins_added after insert on applications
  for each row when (new.allowed_origins <> '{}') execute function svc_application_origins();
create trigger applications_origins_changed after update of allowed_origins on applications
  for each row when (old.allowed_origins <> new.allowed_origins) execute function svc_application_origins();

insert into application_origins (tenant_id, application_id, origin)
select distinct a.tenant_id, a.id, o from applications a, unnest(a.allowed_origins) o;
