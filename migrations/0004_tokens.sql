-- Old processes may keep running: only adds tables.

-- OAuth clients. The id is the client_id; it is looked up before the tenant is known.
create table applications (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  status text not null default 'active' check (status in ('active', 'disabled')),
  client_type text not null check (client_type in ('public', 'confidential')),
  token_endpoint_auth_method text not null check (token_endpoint_auth_method in
    ('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt')),
  audience text not null,
  redirect_uris text[] not null default '{}',
  post_logout_redirect_uris text[] not null default '{}',
  allowed_origins text[] not null default '{}',
  grant_types text[] not null,
  response_types text[] not null,
  scopes text[] not null,
  jwks jsonb,
  dpop_bound_access_tokens boolean not null default false,
  require_pushed_authorization_requests boolean not null default false,
  id_token_signed_response_alg text not null default 'ES256'
    check (id_token_signed_response_alg in ('ES256', 'EdDSA')),
  logo_uri text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id),
  unique (tenant_id, audience),
  check ((client_type = 'public') = (token_endpoint_auth_method = 'none'))
);
create index applications_listed on applications (tenant_id, created_at desc, id desc);
-- A preflight names an origin and nothing else.
create index applications_origins on applications using gin (allowed_origins);

-- More than one row per application while a rotated secret overlaps its successor.
create table application_secrets (
  tenant_id uuid not null,
  application_id uuid not null,
  id uuid not null,
  secret_sha256 bytea not null check (length(secret_sha256) = 32),
  created_at timestamptz not null,
  -- null: the secret in force.
  expires_at timestamptz,
  primary key (tenant_id, application_id, id),
  foreign key (tenant_id, application_id) references applications (tenant_id, id) on delete cascade
);

-- One per login. The tenant is that of the tokens; an agent may be at home in another one.
create table sessions (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  subject text not null,
  subject_type text not null check (subject_type in ('human', 'agent')),
  agent_id uuid,
  client_id uuid not null,
  organization_id uuid,
  key_fingerprint text,
  amr text[] not null,
  auth_time timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  ended_reason text,
  primary key (tenant_id, id),
  check ((subject_type = 'agent') = (agent_id is not null))
);
create index sessions_of_agent on sessions (tenant_id, agent_id) where ended_at is null;
create index sessions_expired on sessions (expires_at);

-- Every refresh token that descends from one login; the lifetime is absolute (RFC 9700 section 4.14.2).
create table refresh_families (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  client_id uuid not null,
  scopes text[] not null,
  audience text[] not null,
  jkt text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  revoked_reason text,
  primary key (tenant_id, id),
  foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade
);
create index refresh_families_of_session on refresh_families (tenant_id, session_id);
create index refresh_families_expired on refresh_families (expires_at);

create table refresh_tokens (
  tenant_id uuid not null,
  family_id uuid not null,
  generation integer not null check (generation >= 0),
  token_sha256 bytea not null check (length(token_sha256) = 32),
  issued_at timestamptz not null,
  -- Set once: the rotation that won. The sealed answer lets a lost reply be repeated for 10 seconds.
  rotated_at timestamptz,
  successor_answer bytea,
  primary key (tenant_id, family_id, generation),
  unique (token_sha256),
  foreign key (tenant_id, family_id) references refresh_families (tenant_id, id) on delete cascade,
  check (successor_answer is null or rotated_at is not null)
);
create index refresh_tokens_answers on refresh_tokens (rotated_at) where successor_answer is not null;

do $$
declare
  protected text;
begin
  foreach protected in array array[
    'applications', 'application_secrets', 'sessions', 'refresh_families', 'refresh_tokens'
  ] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- Every process that remembers whether a principal may act hears of a change at the commit that
-- makes it: the payload is the id of the session, application, agent or tenant.
create function svc_announce_standing() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_standing', coalesce(new.id, old.id)::text);
  return null;
end
$$;
create trigger sessions_standing after update of ended_at on sessions
  for each row execute function svc_announce_standing();
create trigger applications_standing after update or delete on applications
  for each row execute function svc_announce_standing();
create trigger agents_standing after update of status or delete on agents
  for each row execute function svc_announce_standing();
create trigger tenants_standing after update of status or delete on tenants
  for each row execute function svc_announce_standing();

create function svc_announce_secret() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_standing', coalesce(new.application_id, old.application_id)::text);
  return null;
end
$$;
create trigger application_secrets_standing after insert or update or delete on application_secrets
  for each row execute function svc_announce_secret();
