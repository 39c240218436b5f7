-- Old processes may keep running: only adds tables, nullable columns and triggers. An old process enforces no plan.

-- What organizations of a plan may use. Managed by operators of the deployment.
create table billing_plans (
  id uuid primary key,
  name text not null unique check (char_length(name) between 1 and 255),
  features text[] not null,
  -- Null: no ceiling.
  max_members integer check (max_members > 0),
  max_tenants integer check (max_tenants > 0),
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index billing_plans_listed on billing_plans (created_at desc, id desc);
alter table billing_plans enable row level security;
alter table billing_plans force row level security;
-- Limits of organizations are read in every transaction. Only those that cross tenants write.
create policy everyone on billing_plans
  using (true) with check (svc_visible('00000000-0000-0000-0000-000000000000'));

alter table organizations
  add column billing_plan_id uuid references billing_plans (id),
  add column billing_suspended_at timestamptz;
create index organizations_of_plan on organizations (billing_plan_id) where billing_plan_id is not null;

-- What the plan of its organization comes to: {features, suspended}. Null: everything is permitted. Processes read it with
-- the tenant, and hear of a change as of every change of a tenant.
alter table tenants add column billing jsonb;

create function svc_billing_of(organization uuid) returns jsonb language sql stable as $$
  select case when o.billing_plan_id is null and o.billing_suspended_at is null then null
    else jsonb_build_object('features', to_jsonb(p.features), 'suspended', o.billing_suspended_at is not null) end
  from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = organization
$$;

create function svc_tenant_billing() returns trigger language plpgsql as $$
begin
  new.billing := svc_billing_of(new.organization_id);
  return new;
end
$$;
create trigger tenants_billing before insert or update of organization_id on tenants
  for each row execute function svc_tenant_billing();

create function svc_billing_follows() returns trigger language plpgsql as $$
begin
  update tenants set billing = svc_billing_of(new.id) where organization_id = new.id;
  return null;
end
$$;
create trigger organizations_billing after update of billing_plan_id, billing_suspended_at on organizations
  for each row execute function svc_billing_follows();

create function svc_plan_follows() returns trigger language plpgsql as $$
begin
  update tenants t set billing = svc_billing_of(t.organization_id)
    from organizations o where o.id = t.organization_id and o.billing_plan_id = new.id;
  return null;
end
$$;
create trigger billing_plans_tenants after update of features on billing_plans
  for each row execute function svc_plan_follows();
