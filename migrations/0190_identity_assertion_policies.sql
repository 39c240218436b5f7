-- Old processes may keep running: only adds a table.

-- Which applications get identity assertions (ID-JAG) for which other authorization servers.
create table identity_assertion_policies (
  tenant_id uuid not null,
  id uuid not null,
  client_id uuid not null,
  -- The issuer of the other authorization server, and the client_id of the application there.
  audience text not null,
  target_client_id text not null,
  resources text[] not null,
  scopes text[] not null,
  acr text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id),
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade
);
create index identity_assertion_policies_listed on identity_assertion_policies (tenant_id, created_at desc, id desc);
create unique index identity_assertion_policies_one on identity_assertion_policies (tenant_id, client_id, audience);

alter table identity_assertion_policies enable row level security;
alter table identity_assertion_policies force row level security;
create policy tenant on identity_assertion_policies using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
