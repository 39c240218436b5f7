-- Old processes may keep running: they approve without a passkey.

-- The assertion of a passkey over the approval of a delegation: everything that verifies it later.
create table delegation_approvals (
  tenant_id uuid not null,
  delegation_id uuid not null,
  -- What was approved, as RFC 8785 JSON. Its SHA-256 is the challenge.
  statement text not null,
  credential_id bytea not null,
  -- COSE (RFC 9052 section 7).
  public_key bytea not null,
  authenticator_data bytea not null,
  client_data_json bytea not null,
  signature bytea not null,
  approved_at timestamptz not null,
  primary key (tenant_id, delegation_id),
  foreign key (tenant_id, delegation_id) references delegations (tenant_id, id) on delete cascade
);

alter table delegation_approvals enable row level security;
alter table delegation_approvals force row level security;
create policy tenant on delegation_approvals
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
