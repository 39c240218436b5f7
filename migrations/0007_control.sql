-- Old processes may keep running: only adds; what they write is audited as well, without details.

-- The audit chain of a tenant ends in the row whose lock numbers its events anyway: one lock, held
-- to the commit, gives both their order (0001_foundation).
alter table event_sequences
  add column audit_last bigint not null default 0,
  add column audit_hash bytea not null default decode(repeat('00', 32), 'hex');

-- What happened, who did it, in whose name: kept for good. Each row carries the hash of the one
-- before it, so that none can be changed, put in or taken out unnoticed (decisions.md 18 and 22).
create table audit_events (
  tenant_id uuid not null,
  -- 1, 2, 3, ... per tenant, without gaps.
  sequence bigint not null check (sequence > 0),
  id uuid not null,
  type text not null,
  occurred_at timestamptz not null,
  subject jsonb,
  -- Outermost first.
  actors jsonb not null,
  client_id text,
  delegation_id text,
  grant_id text,
  resource jsonb,
  outcome text not null check (outcome in ('success', 'failure', 'denied')),
  request_id text,
  ip text,
  data jsonb not null,
  previous_hash bytea not null check (length(previous_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (tenant_id, sequence)
);
create index audit_events_listed on audit_events (tenant_id, occurred_at desc, id desc);
create index audit_events_by_type on audit_events (tenant_id, type, occurred_at desc, id desc);
create index audit_events_by_subject on audit_events
  (tenant_id, (subject ->> 'sub'), occurred_at desc, id desc);

alter table audit_events enable row level security;
alter table audit_events force row level security;
create policy tenant on audit_events
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create function svc_refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'audit events are only ever added' using errcode = 'insufficient_privilege';
end
$$;
create trigger audit_events_kept before update or delete on audit_events
  for each row execute function svc_refuse_audit_change();
create trigger audit_events_never_emptied before truncate on audit_events
  for each statement execute function svc_refuse_audit_change();

-- Appends events to the chains of their tenants. Each comes as its canonical JSON (RFC 8785) without
-- the members of the chain; its hash is SHA-256 over suite, previous hash, sequence and that text,
-- joined by line feeds.
create function svc_append_audit(canonicals text[]) returns void language plpgsql as $$
declare
  entry record;
  head_tenant uuid;
  head_sequence bigint;
  head_hash bytea;
  entry_hash bytea;
begin
  for entry in
    select given.body, given.body::jsonb as members,
           (given.body::jsonb ->> 'tenant_id')::uuid as tenant_id
    from unnest(canonicals) with ordinality as given (body, place)
    order by 3, given.place
  loop
    if entry.tenant_id is distinct from head_tenant then
      if head_tenant is not null then
        update event_sequences set audit_last = head_sequence, audit_hash = head_hash
        where tenant_id = head_tenant;
      end if;
      head_tenant := entry.tenant_id;
      insert into event_sequences (tenant_id, last) values (head_tenant, 0) on conflict do nothing;
      select audit_last, audit_hash into head_sequence, head_hash
      from event_sequences where tenant_id = head_tenant for update;
    end if;
    head_sequence := head_sequence + 1;
    entry_hash := sha256(convert_to(concat_ws(chr(10),
      'svc-audit-v1', encode(head_hash, 'hex'), head_sequence::text, entry.body), 'UTF8'));
    insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
      delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash)
    values (head_tenant, head_sequence, (entry.members ->> 'id')::uuid, entry.members ->> 'type',
      (entry.members ->> 'occurred_at')::timestamptz, nullif(entry.members -> 'subject', 'null'),
      entry.members -> 'actors', entry.members ->> 'client_id', entry.members ->> 'delegation_id',
      entry.members ->> 'grant_id', nullif(entry.members -> 'resource', 'null'),
      entry.members ->> 'outcome', entry.members ->> 'request_id', entry.members ->> 'ip',
      entry.members -> 'data', head_hash, entry_hash);
    head_hash := entry_hash;
  end loop;
  if head_tenant is not null then
    update event_sequences set audit_last = head_sequence, audit_hash = head_hash
    where tenant_id = head_tenant;
  end if;
end
$$;

-- An agent at home elsewhere, suspended by a tenant of an organization that it is a member of.
create table agent_suspensions (
  tenant_id uuid not null references tenants (id) on delete cascade,
  agent_id uuid not null references agents (id) on delete cascade,
  created_at timestamptz not null,
  primary key (tenant_id, agent_id)
);
create index agent_suspensions_of_agent on agent_suspensions (agent_id);
alter table agent_suspensions enable row level security;
alter table agent_suspensions force row level security;
create policy tenant on agent_suspensions
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- A suspension and a key's end are heard of like everything else that takes standing away.
create function svc_announce_agent() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_standing', coalesce(new.agent_id, old.agent_id)::text);
  return null;
end
$$;
create trigger agent_suspensions_standing after insert or delete on agent_suspensions
  for each row execute function svc_announce_agent();
create trigger agent_keys_standing after insert or update of status or delete on agent_keys
  for each row execute function svc_announce_agent();

-- Every session of an agent ends with it, whatever tenant it is for; those of a human in a tenant too.
create index sessions_by_agent on sessions (agent_id) where ended_at is null;
create index sessions_by_subject on sessions (tenant_id, subject) where ended_at is null;

alter table tenant_users
  -- The tenant's own name for the human; null: the account's.
  add column display_name text,
  -- What a suspended user was before, to become again.
  add column suspended_from text check (suspended_from in ('invited', 'pre_provisioned', 'active'));

-- At most five active fixture users per tenant (interface.md, Limits), whoever adds them. The lock on
-- the tenant orders those who add; it lets in what merely refers to the tenant.
create function svc_limit_fixtures() returns trigger language plpgsql as $$
begin
  perform from tenants where id = new.tenant_id for no key update;
  if (select count(*) from tenant_users where tenant_id = new.tenant_id and fixture
      and status = 'active' and id <> new.id) >= 5 then
    raise exception 'a tenant has at most five active fixture users'
      using errcode = 'check_violation', constraint = 'fixture_user_limit';
  end if;
  return new;
end
$$;
create trigger tenant_users_fixture_limit before insert or update of status, fixture on tenant_users
  for each row when (new.fixture and new.status = 'active')
  execute function svc_limit_fixtures();
