-- Old processes may keep running: only adds a table, and columns that may be empty.

alter table applications
  -- Where the keys of the client are fetched from, instead of `jwks`.
  add column jwks_uri text check (jwks_uri is null or jwks is null),
  -- Of a client that registered itself (RFC 7591): metadata that this service only hands on.
  add column registration jsonb,
  -- The scopes beyond a person's own data that it may register for.
  add column registration_scopes text[],
  -- Of the token with which it manages its registration (RFC 7592).
  add column registration_token_sha256 bytea check (length(registration_token_sha256) = 32);

-- Initial access tokens (RFC 7591 section 3): whoever made one answers for what it registers.
create table registration_tokens (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  -- What its maker held: no client that it registers may have more.
  scopes text[] not null,
  max_uses integer not null check (max_uses > 0),
  uses integer not null default 0 check (uses between 0 and max_uses),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, id)
);
create index registration_tokens_expired on registration_tokens (expires_at);

alter table registration_tokens enable row level security;
alter table registration_tokens force row level security;
create policy tenant on registration_tokens
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
