-- Old processes may keep running: only adds tables, and lets a session of a person name its agent.

-- What an agent asks of a person, until somebody decides. The user code is looked up before the
-- tenant is known.
create table delegation_requests (
  tenant_id uuid not null references tenants (id) on delete cascade,
  -- Also the id of the delegation that it becomes.
  id uuid not null,
  agent_id uuid not null,
  -- The key of the login in which it was asked: shown to whoever decides.
  key_fingerprint text,
  device_code_sha256 bytea not null unique check (length(device_code_sha256) = 32),
  user_code text not null unique check (user_code ~ '^[BCDFGHJKLMNPQRSTVWXZ]{8}$'),
  scopes text[] not null check (cardinality(scopes) > 0),
  audience text not null,
  -- Where it was asked from.
  address text not null,
  status text not null default 'pending'
    check (status in ('pending', 'approved', 'denied', 'consumed')),
  interval_secs integer not null check (interval_secs > 0),
  polled_at timestamptz,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  decided_at timestamptz,
  decided_by text,
  primary key (tenant_id, id),
  check ((status = 'pending') = (decided_at is null)),
  check ((decided_at is null) = (decided_by is null))
);
create index delegation_requests_expired on delegation_requests (expires_at);

create table delegations (
  tenant_id uuid not null,
  -- Also the id of the session that its tokens hang on.
  id uuid not null,
  agent_id uuid not null,
  agent_name text not null,
  -- The person, by their subject in the tenant.
  subject text not null,
  organization_id uuid,
  scopes text[] not null check (cardinality(scopes) > 0),
  audience text not null,
  -- How the person had signed in when they approved.
  level smallint not null check (level between 1 and 3),
  amr text[] not null,
  auth_time timestamptz not null,
  -- The key of the login that its first token was fetched in; null until then.
  key_fingerprint text,
  created_at timestamptz not null,
  -- Until its first token is fetched, the end of the request.
  expires_at timestamptz not null,
  revoked_at timestamptz,
  revoked_reason text,
  primary key (tenant_id, id),
  foreign key (tenant_id, subject) references tenant_users (tenant_id, sub) on delete cascade,
  check ((revoked_at is null) = (revoked_reason is null))
);
create index delegations_listed on delegations (tenant_id, created_at desc, id desc);
create index delegations_of_person on delegations (tenant_id, subject, created_at desc, id desc);
create index delegations_of_agent on delegations (agent_id) where revoked_at is null;
create index delegations_expired on delegations (expires_at);

-- The session of a delegation is the person's and names the agent that acts.
alter table sessions drop constraint sessions_check;
alter table sessions add constraint sessions_agent_named
  check (subject_type <> 'agent' or agent_id is not null);

do $$
declare
  protected text;
begin
  foreach protected in array array['delegation_requests', 'delegations'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- A delegation takes its session along, and is announced as in 0004: also one without a session.
create function svc_end_tokens_of_delegation() returns trigger language plpgsql as $$
begin
  update sessions set ended_at = new.revoked_at, ended_reason = new.revoked_reason
  where tenant_id = new.tenant_id and id = new.id and ended_at is null;
  perform pg_notify('svc_standing', new.id::text);
  return null;
end
$$;
create trigger delegations_standing after update of revoked_at on delegations
  for each row when (new.revoked_at is not null and old.revoked_at is null)
  execute function svc_end_tokens_of_delegation();

-- Whoever is suspended or removed leaves no delegation behind that could come back with them,
-- whichever way it was done. Those who do it through the API end delegations themselves, before,
-- and tell each one.
create function svc_end_delegations_of_person() returns trigger language plpgsql as $$
begin
  update delegations set revoked_at = now(), revoked_reason = 'user_' || new.status
  where tenant_id = new.tenant_id and subject = new.sub and revoked_at is null;
  return null;
end
$$;
create trigger tenant_users_delegations after update of status on tenant_users
  for each row when (old.status = 'active' and new.status <> 'active')
  execute function svc_end_delegations_of_person();

create function svc_end_delegations_of_agent() returns trigger language plpgsql as $$
begin
  update delegations set revoked_at = now(),
    revoked_reason = case tg_op when 'DELETE' then 'agent_deleted' else 'agent_suspended' end
  where agent_id = old.id and revoked_at is null;
  return null;
end
$$;
create trigger agents_delegations_suspended after update of status on agents
  for each row when (new.status <> 'active')
  execute function svc_end_delegations_of_agent();
create trigger agents_delegations_deleted after delete on agents
  for each row execute function svc_end_delegations_of_agent();

create function svc_end_delegations_in_tenant() returns trigger language plpgsql as $$
begin
  update delegations set revoked_at = now(), revoked_reason = 'agent_suspended'
  where tenant_id = new.tenant_id and agent_id = new.agent_id and revoked_at is null;
  return null;
end
$$;
create trigger agent_suspensions_delegations after insert on agent_suspensions
  for each row execute function svc_end_delegations_in_tenant();
