-- Old processes may keep running: only adds a table.

-- The key with which an agent signs requests to others (RFC 9421). The service makes and holds it.
create table agent_signature_keys (
  tenant_id uuid not null,
  agent_id uuid not null unique references agents (id) on delete cascade,
  -- Base64url: the Ed25519 point, and its RFC 7638 thumbprint.
  point text not null,
  kid text not null,
  private_sealed bytea not null,
  created_at timestamptz not null,
  primary key (tenant_id, agent_id)
);
create index agent_signature_keys_newest on agent_signature_keys (created_at desc, agent_id);
alter table agent_signature_keys enable row level security;
alter table agent_signature_keys force row level security;
create policy tenant on agent_signature_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
