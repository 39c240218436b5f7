-- Old processes may keep running: a grant that needs approvals is made after the update alone.

-- Whether a person approves the calls of a grant.
alter table vault_grants
  add column approval text not null default 'none' check (approval in ('none', 'first', 'each')),
  -- The approval after which a grant with `first` needs no more.
  add column approved_at timestamptz;

-- Calls that wait for a person, and what became of them.
create table call_approvals (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('egress', 'mcp')),
  status text not null default 'pending'
    check (status in ('pending', 'approved', 'denied', 'used', 'expired')),
  -- The grant of the vault, or of the MCP server.
  grant_id uuid not null,
  credential_id uuid,
  agent_id uuid not null,
  delegation_id uuid,
  -- The subject of the person who may answer. Null: any owner of the tenant.
  approver text,
  -- SHA-256 of the whole call, hexadecimal.
  match_sha256 text not null,
  -- What the person sees of the call.
  shown jsonb not null,
  created_at timestamptz not null,
  -- Of a pending one: when it ends without an answer. Of an approved one: until when the call may be repeated.
  expires_at timestamptz not null,
  -- When the mail to the approver was queued.
  announced_at timestamptz,
  decided_at timestamptz,
  decided_by text,
  used_at timestamptz,
  primary key (tenant_id, id)
);

create unique index call_approvals_id on call_approvals (id);
create unique index call_approvals_pending on call_approvals (tenant_id, grant_id, match_sha256)
  where status = 'pending';
create index call_approvals_listed on call_approvals (tenant_id, created_at desc, id desc);
create index call_approvals_of_agent on call_approvals (tenant_id, agent_id, expires_at);
create index call_approvals_open on call_approvals (expires_at) where status in ('pending', 'approved');
create index call_approvals_announced on call_approvals (created_at)
  where announced_at is null and status = 'pending';

alter table call_approvals enable row level security;
alter table call_approvals force row level security;
create policy tenant on call_approvals
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
