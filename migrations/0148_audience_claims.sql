-- Old processes may keep running: only adds a table. Audiences that they write are not claimed until they are next changed.

-- Which tenant has an audience: one application, one API resource, both of the same tenant. The default audience of an
-- application contains its id and needs no claim.
create table audience_claims (
  -- The canonical form (RFC 3986 section 6.2.2).
  audience_key text not null,
  holder text not null check (holder in ('application', 'resource')),
  tenant_id uuid not null references tenants (id) on delete cascade,
  application_id uuid,
  resource_id uuid,
  primary key (tenant_id, audience_key, holder),
  unique (audience_key, holder),
  check ((holder = 'application') = (application_id is not null)),
  check ((holder = 'resource') = (resource_id is not null)),
  foreign key (tenant_id, application_id) references applications (tenant_id, id) on delete cascade,
  foreign key (tenant_id, resource_id) references api_resources (tenant_id, id) on delete cascade
);
create index audience_claims_of_application on audience_claims (tenant_id, application_id)
  where application_id is not null;
create index audience_claims_of_resource on audience_claims (tenant_id, resource_id)
  where resource_id is not null;
alter table audience_claims enable row level security;
alter table audience_claims force row level security;
-- A tenant must see that another tenant has an audience. It learns so much from the refusal too.
create policy everyone on audience_claims for select using (true);
create policy tenant on audience_claims
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

insert into audience_claims (audience_key, holder, tenant_id, resource_id)
  select resource_key, 'resource', tenant_id, id from api_resources;

-- The oldest of several applications keeps the audience. The others work on without a claim.
with spelled as (
  select a.tenant_id, a.id, a.created_at, a.audience,
    regexp_replace(regexp_replace(lower(substring(a.audience from '^[A-Za-z]+://[^/?]*')),
      '^(https://.*):443$', '\1'), '^(http://.*):80$', '\1') as origin,
    substring(a.audience from '^[A-Za-z]+://[^/?]*(.*)$') as rest
  from applications a where a.audience not like 'urn:svc:%'
), keyed as (
  select tenant_id, id, created_at, case when origin is null then audience
    when rest = '' or rest like '?%' then origin || '/' || rest else origin || rest end as key
  from spelled
)
insert into audience_claims (audience_key, holder, tenant_id, application_id)
  select k.key, 'application', k.tenant_id, k.id from keyed k
  where not exists (select from audience_claims c where c.audience_key = k.key and c.tenant_id <> k.tenant_id)
  order by k.created_at, k.id
  on conflict do nothing;
