-- Old processes may keep running: grants of MCP servers are made after the update alone.

-- MCP servers whose tools agents call.
create table mcp_servers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- The last segment of its address at the gateway.
  slug text not null,
  name text not null,
  url text not null,
  -- What the calls are sent with: a credential, the account of the person at a connector, or nothing.
  credential_id uuid,
  connector text,
  allow_private boolean not null,
  -- As last listed: [{name, title?, description?, annotations?}].
  tools jsonb not null default '[]',
  tools_seen_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index mcp_servers_listed on mcp_servers (tenant_id, created_at desc, id desc);
create unique index mcp_servers_slug on mcp_servers (tenant_id, slug);

alter table mcp_servers enable row level security;
alter table mcp_servers force row level security;
create policy tenant on mcp_servers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- A grant is of a credential, or of tools of an MCP server.
alter table vault_grants
  alter column credential_id drop not null,
  add column mcp_server_id uuid,
  -- Names, and beginnings of names that end with `*`.
  add column tools text[],
  -- Rules for arguments: [{tool, pointer, op, value}].
  add column tool_rules jsonb,
  -- The tools that an approval opened, of a grant with `first`.
  add column approved_tools text[] not null default '{}',
  add constraint vault_grants_of_one check ((credential_id is null) = (mcp_server_id is not null)) not valid,
  add constraint vault_grants_mcp_server_fkey foreign key (tenant_id, mcp_server_id)
    references mcp_servers (tenant_id, id) on delete cascade not valid;
create index vault_grants_of_server on vault_grants (tenant_id, mcp_server_id, created_at desc, id desc)
  where mcp_server_id is not null;
