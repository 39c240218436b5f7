-- Old processes may keep running: only adds columns with defaults and a table.

-- The API resources of a grant. Null: the grant is for applications or for this service.
alter table authorization_codes add column resource_ids uuid[];
alter table refresh_families add column resource_ids uuid[];
alter table backchannel_requests add column resource_ids uuid[];

-- A native application may use any port of its loopback redirect URIs (RFC 8252 section 7.3).
alter table applications add column loopback_any_port boolean not null default false;

-- The consent of a user to an application for one API resource.
create table resource_consents (
  tenant_id uuid not null,
  subject text not null,
  client_id uuid not null,
  resource_id uuid not null,
  scopes text[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, subject, client_id, resource_id),
  foreign key (tenant_id, subject) references tenant_users (tenant_id, sub) on delete cascade,
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade,
  foreign key (tenant_id, resource_id) references api_resources (tenant_id, id) on delete cascade
);
create index resource_consents_of_resource on resource_consents (tenant_id, resource_id);
create index resource_consents_of_client on resource_consents (tenant_id, client_id);

alter table resource_consents enable row level security;
alter table resource_consents force row level security;
create policy tenant on resource_consents
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
