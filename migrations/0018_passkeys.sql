-- Old processes may keep running: only adds tables.

-- A public key of an account (WebAuthn). Global, like the account: one passkey serves every tenant.
create table passkeys (
  account_id uuid not null references accounts (id) on delete cascade,
  id uuid not null,
  credential_id bytea not null unique check (length(credential_id) between 1 and 1023),
  -- COSE (RFC 9052 section 7).
  public_key bytea not null,
  -- Signatures so far, by the authenticator's own count; 0 for ever where it does not count.
  counter bigint not null check (counter >= 0),
  -- Not eligible for backup: the key cannot leave the device.
  device_bound boolean not null,
  backed_up boolean not null,
  transports text[] not null,
  aaguid uuid not null,
  name text not null check (length(name) between 1 and 60),
  created_at timestamptz not null,
  last_used_at timestamptz,
  primary key (account_id, id),
  check (not (device_bound and backed_up))
);

-- A challenge that a browser was given. It is removed by the one that answers it.
create table passkey_ceremonies (
  tenant_id uuid not null references tenants (id) on delete cascade,
  challenge_sha256 bytea not null unique check (length(challenge_sha256) = 32),
  purpose text not null check (purpose in ('sign_in', 'second_factor', 'registration')),
  -- The browser that asked, by a secret of its own.
  browser_sha256 bytea not null check (length(browser_sha256) = 32),
  -- The session it is for; null while nobody is signed in.
  session_id uuid,
  expires_at timestamptz not null,
  primary key (tenant_id, challenge_sha256),
  check ((session_id is null) = (purpose = 'sign_in'))
);
create index passkey_ceremonies_expired on passkey_ceremonies (expires_at);

alter table passkey_ceremonies enable row level security;
alter table passkey_ceremonies force row level security;
create policy tenant on passkey_ceremonies
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

alter table passkeys enable row level security;
alter table passkeys force row level security;
create policy crossing on passkeys using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
