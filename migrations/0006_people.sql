-- Old processes may keep running: only adds tables.

-- A person signed in with a browser. Found by the hash of its cookie before the tenant is known.
create table browser_sessions (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  account_id uuid not null references accounts (id) on delete cascade,
  -- Changes with every step of assurance; what was before no longer opens anything.
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  level smallint not null check (level between 1 and 3),
  -- A second factor is owed: nobody is signed in until it was given.
  pending boolean not null,
  amr text[] not null,
  auth_time timestamptz not null,
  password_at timestamptz not null,
  idle_secs integer not null check (idle_secs > 0),
  user_agent text not null,
  address text not null,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  -- Absolute: use does not move it.
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_reason text,
  primary key (tenant_id, id),
  check ((ended_at is null) = (ended_reason is null))
);
create index browser_sessions_of_account on browser_sessions (tenant_id, account_id)
  where ended_at is null;
create index browser_sessions_expired on browser_sessions (expires_at);

-- Where a browser is being led while its person signs in: what is demanded, and the way back.
create table sign_in_flows (
  tenant_id uuid not null references tenants (id) on delete cascade,
  token_sha256 bytea not null unique check (length(token_sha256) = 32),
  level smallint not null check (level between 1 and 3),
  max_age_secs integer check (max_age_secs >= 0),
  since timestamptz,
  -- The only person who will do; null: anybody of the tenant.
  sub text,
  -- An own path: one slash and no second one.
  return_to text not null check (return_to ~ '^/([^/\\]|$)'),
  reason jsonb not null,
  login_hint text,
  ui_locales text,
  form_targets text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, token_sha256)
);
create index sign_in_flows_expired on sign_in_flows (expires_at);

-- Second factors belong to the account, whatever tenant it is used in: global, like accounts.
create table totp_factors (
  account_id uuid not null references accounts (id) on delete cascade,
  id uuid not null,
  secret_sealed bytea not null,
  created_at timestamptz not null,
  -- Null while its first code has not been given.
  confirmed_at timestamptz,
  -- The time step of the last code that was accepted: a step serves once (RFC 6238 section 5.2).
  last_step bigint,
  last_used_at timestamptz,
  primary key (account_id, id),
  check (confirmed_at is null or last_step is not null)
);
-- One of each kind: two enrolments at once end with one factor.
create unique index totp_factors_confirmed on totp_factors (account_id)
  where confirmed_at is not null;
create unique index totp_factors_offered on totp_factors (account_id) where confirmed_at is null;

create table recovery_codes (
  account_id uuid not null references accounts (id) on delete cascade,
  code_sha256 bytea not null check (length(code_sha256) = 32),
  created_at timestamptz not null,
  used_at timestamptz,
  primary key (account_id, code_sha256)
);

do $$
declare
  protected text;
begin
  foreach protected in array array['browser_sessions', 'sign_in_flows'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
  foreach protected in array array['totp_factors', 'recovery_codes'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy crossing on %I using (svc_visible(''00000000-0000-0000-0000-000000000000''))
         with check (svc_visible(''00000000-0000-0000-0000-000000000000''))',
      protected);
  end loop;
end
$$;
