-- Old processes may keep running: only adds tables, and columns with defaults.

alter table applications
  -- RFC 7636 for confidential clients too; public ones always need it.
  add column require_pkce boolean not null default false,
  -- RFC 9396 section 10: what the application may ask for in authorization_details.
  add column authorization_details_types text[] not null default '{}';

-- Authorization requests: pushed ones (RFC 9126), and those whose person is signing in or deciding.
create table authorization_requests (
  tenant_id uuid not null,
  id uuid not null,
  -- Of what names the request outside: the end of a request_uri, or of the address to come back to.
  handle_sha256 bytea not null unique check (length(handle_sha256) = 32),
  client_id uuid not null,
  -- The pushed request that this one continues: it is used up with the code.
  pushed_id uuid,
  request jsonb not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- A code was issued, or the person said no.
  consumed_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade
);
create index authorization_requests_expired on authorization_requests (expires_at);

create table authorization_codes (
  tenant_id uuid not null,
  -- Also the id of the refresh family that it is turned into.
  id uuid not null,
  code_sha256 bytea not null unique check (length(code_sha256) = 32),
  client_id uuid not null,
  session_id uuid not null,
  subject text not null,
  organization_id uuid,
  redirect_uri text not null,
  code_challenge text,
  jkt text,
  scopes text[] not null,
  audience text[] not null,
  nonce text,
  level smallint not null check (level between 1 and 3),
  amr text[] not null,
  auth_time timestamptz not null,
  authorization_details jsonb,
  -- Claims asked for one by one (OpenID Connect Core section 5.5).
  claims jsonb,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  redeemed_at timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade
);
create index authorization_codes_expired on authorization_codes (expires_at);

-- What a person allowed an application once and for all.
create table consents (
  tenant_id uuid not null,
  -- The person, by their subject in the tenant.
  subject text not null,
  client_id uuid not null,
  scopes text[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, subject, client_id),
  foreign key (tenant_id, subject) references tenant_users (tenant_id, sub) on delete cascade,
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade
);

-- A family of a person remembers how they had signed in when they allowed it: a session that is
-- stepped up later does not lift the tokens of before.
alter table refresh_families
  add column subject text,
  add column level smallint check (level between 1 and 3),
  add column amr text[],
  add column auth_time timestamptz,
  add column authorization_details jsonb,
  add column claims jsonb;

do $$
declare
  protected text;
begin
  foreach protected in array array['authorization_requests', 'authorization_codes', 'consents'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- As in 0004: a person who is suspended or removed loses their tokens at the commit.
create function svc_announce_person() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_standing', coalesce(new.sub, old.sub));
  return null;
end
$$;
create trigger tenant_users_standing after update of status or delete on tenant_users
  for each row execute function svc_announce_person();

-- The tokens of a person hang on a row of `sessions` with the id of their browser session: it lives
-- as long as the tokens may, and ends with the browser session, unless a new sign-in of the browser
-- merely took its place.
create function svc_end_tokens_of_session() returns trigger language plpgsql as $$
begin
  update sessions set ended_at = new.ended_at, ended_reason = new.ended_reason
  where tenant_id = new.tenant_id and id = new.id and ended_at is null;
  return null;
end
$$;
create trigger browser_sessions_tokens after update of ended_at on browser_sessions
  for each row
  when (new.ended_at is not null and old.ended_at is null and new.ended_reason <> 'replaced')
  execute function svc_end_tokens_of_session();
