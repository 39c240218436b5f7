-- Old processes may keep running: only adds tables.

-- Token status lists (draft-ietf-oauth-status-list section 4): one bit per token of a tenant and an issuer.
create table status_lists (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null unique,
  purpose text not null check (purpose in ('credential', 'access_token')),
  -- The `iss` of the tokens in the list and of the list token.
  issuer text not null,
  -- A power of two, so that random bits give every index the same chance.
  size integer not null default 131072 check (size >= 131072 and size & (size - 1) = 0),
  created_at timestamptz not null,
  -- Set when four fifths of the indices are used: later tokens get another list.
  full_at timestamptz,
  -- The current list token, shared by all processes, and the number of invalid entries that it shows.
  token text,
  token_invalid integer,
  signed_at timestamptz,
  -- When a process last took the right to sign: at most one does so in a second.
  signing_at timestamptz,
  primary key (tenant_id, id),
  check ((token is null) = (signed_at is null) and (token is null) = (token_invalid is null))
);
create unique index status_lists_open on status_lists (tenant_id, purpose, issuer) where full_at is null;
create index status_lists_full on status_lists (full_at) where full_at is not null;

-- An allocated index. The primary key forbids a second allocation.
create table status_entries (
  tenant_id uuid not null,
  list_id uuid not null,
  idx integer not null check (idx >= 0),
  -- What the token belongs to: the id of a credential, or the `jti` of an access token.
  ref text not null,
  -- The parties that can end an access token. Null for a credential, whose end sets the entry.
  status_query jsonb,
  expires_at timestamptz not null,
  -- An invalid entry never becomes valid again.
  invalid_at timestamptz,
  primary key (tenant_id, list_id, idx),
  foreign key (tenant_id, list_id) references status_lists (tenant_id, id) on delete cascade
);
create index status_entries_of on status_entries (tenant_id, ref);
create index status_entries_invalid on status_entries (tenant_id, list_id, idx) where invalid_at is not null;

do $$
declare
  protected text;
begin
  foreach protected in array array['status_lists', 'status_entries'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
