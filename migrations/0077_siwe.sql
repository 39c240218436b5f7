-- Old processes may keep running: only adds tables.

-- An Ethereum account that a person signs in with (ERC-4361). Global, like the account. It has one account for ever:
-- linking it elsewhere is refused until it is removed.
create table account_wallets (
  account_id uuid not null references accounts (id) on delete cascade,
  id uuid not null,
  -- Lower case.
  address text not null unique check (address ~ '^0x[0-9a-f]{40}$'),
  created_at timestamptz not null,
  last_used_at timestamptz,
  primary key (account_id, id)
);
alter table account_wallets enable row level security;
alter table account_wallets force row level security;
create policy crossing on account_wallets using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));

-- The nonce of a message that a browser was given. It is removed by the message that comes back signed.
create table siwe_nonces (
  tenant_id uuid not null references tenants (id) on delete cascade,
  nonce_sha256 bytea not null unique check (length(nonce_sha256) = 32),
  purpose text not null check (purpose in ('sign_in', 'link')),
  -- The browser that asked, by a secret of its own.
  browser_sha256 bytea not null check (length(browser_sha256) = 32),
  -- The session that requested it. Null at a sign-in.
  session_id uuid,
  expires_at timestamptz not null,
  primary key (tenant_id, nonce_sha256),
  check ((session_id is null) = (purpose = 'sign_in'))
);
create index siwe_nonces_expired on siwe_nonces (expires_at);
alter table siwe_nonces enable row level security;
alter table siwe_nonces force row level security;
create policy tenant on siwe_nonces using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
