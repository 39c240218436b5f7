-- Old processes may keep running: only adds tables.

-- Global: an organization spans tenants, one per environment. A transaction bound to a tenant sees
-- the organization of that tenant and no other.
create table organizations (
  id uuid primary key,
  name text not null,
  slug text not null unique check (slug ~ '^[a-z0-9-]{3,63}$'),
  status text not null default 'active' check (status in ('active', 'suspended')),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- One environment of an organization. Its own id is its tenant_id.
create table tenants (
  id uuid primary key,
  organization_id uuid references organizations (id),
  name text not null,
  slug text not null unique check (slug ~ '^[a-z0-9-]{3,63}$'),
  environment text not null check (environment in ('sandbox', 'production')),
  status text not null default 'active' check (status in ('active', 'suspended')),
  -- The one tenant in which organizations and operators are looked after; it has no organization.
  control_plane boolean not null default false,
  admit_agents boolean not null,
  direct_agent_registration boolean not null default false,
  credential_issuer_enabled boolean not null default false,
  support_contact text,
  -- Branding, checkout redirect hosts, session lifetimes: members appear with what reads them.
  settings jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check (control_plane = (organization_id is null))
);
-- Two first starts at once meet here: one control plane, whoever wins.
create unique index tenants_control_plane on tenants (control_plane) where control_plane;
create index tenants_of_organization on tenants (organization_id, created_at desc, id desc);

-- Every process that remembers tenants hears of a change at the commit that makes it.
create function svc_announce_tenant() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_tenants', coalesce(new.id, old.id)::text);
  return null;
end
$$;
create trigger tenants_announced after insert or update or delete on tenants
  for each row execute function svc_announce_tenant();

-- Global: one human, whatever tenants know them by a subject of their own. Only transactions that
-- cross tenants see accounts; a tenant sees its tenant_users.
create table accounts (
  id uuid primary key,
  email text not null,
  -- What is compared: lower case. Two accounts never share a mailbox.
  email_key text not null unique check (email_key = lower(email)),
  email_verified boolean not null default false,
  display_name text not null default '',
  -- argon2id, PHC string; null: no password.
  password_hash text,
  password_changed_at timestamptz,
  status text not null default 'active' check (status in ('active', 'suspended')),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- A human in one tenant: a membership record, not the account (decisions.md 2.3).
create table tenant_users (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  account_id uuid not null references accounts (id) on delete cascade,
  -- Pairwise: says nothing about the same human elsewhere.
  sub text not null,
  status text not null check
    (status in ('invited', 'pre_provisioned', 'active', 'suspended', 'removed')),
  roles text[] not null default '{}',
  fixture boolean not null default false,
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_login_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, account_id),
  unique (tenant_id, sub)
);
create index tenant_users_listed on tenant_users (tenant_id, created_at desc, id desc);
create index tenant_users_of_account on tenant_users (account_id);
create index tenant_users_fixtures on tenant_users (tenant_id, created_at) where fixture;

-- A software principal. Its home is the tenant it registered in.
create table agents (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  status text not null default 'active' check (status in ('active', 'suspended')),
  scopes text[] not null,
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_authenticated_at timestamptz,
  primary key (tenant_id, id)
);
-- Login and refresh know the agent before its home.
create unique index agents_by_id on agents (id);
create index agents_listed on agents (tenant_id, created_at desc, id desc);

create table agent_keys (
  tenant_id uuid not null,
  -- RFC 7638 thumbprint.
  fingerprint text not null,
  agent_id uuid not null,
  algorithm text not null check (algorithm in ('ed25519', 'es256')),
  -- Raw: 32 bytes ed25519, 33 bytes es256 (compressed point).
  public_key bytea not null check (length(public_key) in (32, 33)),
  status text not null default 'active' check (status in ('active', 'deprecated', 'revoked')),
  created_at timestamptz not null,
  deprecated_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, fingerprint),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  check ((status = 'revoked') = (revoked_at is not null))
);
create index agent_keys_of_agent on agent_keys (tenant_id, agent_id);
create index agent_keys_by_fingerprint on agent_keys (fingerprint);

create table agent_anchors (
  tenant_id uuid not null,
  agent_id uuid not null,
  type text not null check (type in ('did_key', 'did_web', 'erc8004', 'client_credentials')),
  value text not null,
  -- The key that a did:key names.
  fingerprint text,
  status text not null default 'active' check (status in ('active', 'revoked')),
  verified_at timestamptz not null,
  revoked_at timestamptz,
  primary key (tenant_id, type, value),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade
);
create index agent_anchors_of_agent on agent_anchors (tenant_id, agent_id);
create index agent_anchors_by_value on agent_anchors (value);

-- Global, like organizations. An agent's home may be another tenant than those of the organization.
create table organization_members (
  organization_id uuid not null references organizations (id) on delete cascade,
  member_type text not null check (member_type in ('agent', 'account')),
  member_id uuid not null,
  role text not null check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null,
  primary key (organization_id, member_type, member_id)
);
create index organization_members_by_member on organization_members (member_type, member_id);

-- A registration on its way. Found by its id before its tenant is known.
create table pow_challenges (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('agent', 'workspace')),
  status text not null default 'issued' check (status in ('issued', 'consumed', 'expired')),
  -- In clear: it is the prefix to be hashed, handed to whoever asked, and opens nothing by itself.
  -- Verification needs its very characters.
  challenge_token text not null,
  difficulty_bits integer not null check (difficulty_bits between 1 and 28),
  min_duration_secs integer not null check (min_duration_secs between 0 and 60),
  invalid_proofs integer not null default 0,
  name text not null,
  did text not null,
  key_algorithm text not null check (key_algorithm in ('ed25519', 'es256')),
  public_key bytea not null,
  fingerprint text not null,
  -- Both by the clock of the database, the one clock that every process shares.
  created_at timestamptz not null,
  expires_at timestamptz not null,
  consumed_at timestamptz,
  primary key (tenant_id, id),
  check ((status = 'consumed') = (consumed_at is not null))
);
create unique index pow_challenges_by_id on pow_challenges (id);
create index pow_challenges_expired on pow_challenges (expires_at);

-- A login on its way. The tenant is that of the token to be issued; the agent may live elsewhere.
create table agent_challenges (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  agent_id uuid not null references agents (id) on delete cascade,
  fingerprint text not null,
  nonce text not null,
  created_at timestamptz not null,
  -- Whole seconds: the payload carries them.
  expires_at timestamptz not null,
  consumed_at timestamptz,
  primary key (tenant_id, id)
);
create unique index agent_challenges_by_id on agent_challenges (id);
create index agent_challenges_of_agent on agent_challenges (agent_id);
create index agent_challenges_expired on agent_challenges (expires_at);

-- A link that makes the human behind it an operator of the organization. Single use.
create table operator_invites (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  organization_id uuid not null references organizations (id) on delete cascade,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  role text not null default 'owner' check (role in ('owner', 'admin', 'member')),
  invited_by_agent_id uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (tenant_id, id)
);

do $$
declare
  protected text;
begin
  foreach protected in array array[
    'tenant_users', 'agents', 'agent_keys', 'agent_anchors', 'pow_challenges',
    'agent_challenges', 'operator_invites'
  ] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants using (svc_visible(id)) with check (svc_visible(id));

-- The rules of the global tables. The nil UUID belongs to no tenant, so it is visible only to a
-- transaction that crosses tenants.
alter table organizations enable row level security;
alter table organizations force row level security;
create policy tenant on organizations
  using (svc_visible('00000000-0000-0000-0000-000000000000') or exists (
    select from tenants t where t.organization_id = organizations.id and svc_visible(t.id)))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));

alter table organization_members enable row level security;
alter table organization_members force row level security;
create policy tenant on organization_members
  using (svc_visible('00000000-0000-0000-0000-000000000000') or exists (
    select from tenants t
    where t.organization_id = organization_members.organization_id and svc_visible(t.id)))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));

alter table accounts enable row level security;
alter table accounts force row level security;
create policy crossing on accounts
  using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
