-- Old processes may keep running: only adds a table.

-- An API or MCP server for which this service issues access tokens (RFC 8707, RFC 9728).
create table api_resources (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- As registered: the `aud` of its tokens.
  resource text not null,
  -- The canonical form. Unique over the whole deployment: an audience belongs to one tenant.
  resource_key text not null unique,
  name text not null,
  -- [{name, description, kind}], in the order of registration.
  scopes jsonb not null,
  allowed_clients text not null check (allowed_clients in ('any', 'listed')),
  client_ids text[] not null,
  require_dpop boolean not null,
  -- Null: the lifetime of the deployment.
  access_token_lifetime_secs integer check (access_token_lifetime_secs > 0),
  token_status_list boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index api_resources_listed on api_resources (tenant_id, created_at desc, id desc);

-- Processes that remember a resource, or the status of its tokens, hear of a change.
create trigger api_resources_standing after update or delete on api_resources
  for each row execute function svc_announce_standing();

alter table api_resources enable row level security;
alter table api_resources force row level security;
create policy tenant on api_resources
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
