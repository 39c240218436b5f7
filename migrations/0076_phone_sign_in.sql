-- Old processes may keep running: only adds tables.

-- A one-time code that the service sent to a phone number or an email address. One use, counted attempts.
create table code_tickets (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  purpose text not null check (purpose in ('phone_sign_in', 'phone_proof', 'address_proof', 'risk')),
  -- Null: no account has the number. The row costs the same and grants nothing.
  account_id uuid references accounts (id) on delete cascade,
  -- Where the code went: an E.164 number or a lower-case address.
  target text not null check (char_length(target) between 1 and 320),
  -- With the secret of the flow or session, which is not stored: the rows alone do not let a code be guessed.
  code_sha256 bytea not null check (length(code_sha256) = 32),
  -- The sign-in flow or the session that the code belongs to.
  place_sha256 bytea not null check (length(place_sha256) = 32),
  attempts_left integer not null check (attempts_left >= 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (tenant_id, id)
);
create index code_tickets_of_place on code_tickets (place_sha256);
create index code_tickets_of_account on code_tickets (account_id) where account_id is not null;
create index code_tickets_expiry on code_tickets (expires_at);
alter table code_tickets enable row level security;
alter table code_tickets force row level security;
create policy tenant on code_tickets
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- The number that a person signs in with, proved by a code. Global, like the account. A number has one account:
-- the one that proved it last.
create table account_phones (
  account_id uuid primary key references accounts (id) on delete cascade,
  phone_number text not null unique check (phone_number ~ '^\+[1-9][0-9]{6,14}$'),
  proved_at timestamptz not null,
  last_used_at timestamptz
);
alter table account_phones enable row level security;
alter table account_phones force row level security;
create policy crossing on account_phones using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
