-- Old processes may keep running: only adds tables.

-- What row-level security asks. A transaction is bound to one tenant by svc.tenant_id, or crosses
-- tenants by svc.scope = 'system'; one that is bound to nothing sees nothing. The function is a
-- single expression, so that the planner puts it in place of its call.
create function svc_visible(tenant_id uuid) returns boolean
language sql stable parallel safe as $$
  select tenant_id = nullif(current_setting('svc.tenant_id', true), '')::uuid
      or current_setting('svc.scope', true) = 'system'
$$;

-- The outbox: what happened, written in the transaction of the change that it tells of.
create table events (
  tenant_id uuid not null,
  -- 1, 2, 3, ... per tenant, in the order of the commits, without gaps.
  sequence bigint not null check (sequence > 0),
  id uuid not null,
  type text not null,
  -- What the receivers get to see: actor, resource, request_id and the resource's public members.
  data jsonb not null,
  occurred_at timestamptz not null,
  -- A worker holds the event until then; afterwards it is anybody's.
  leased_until timestamptz,
  -- The lease that holds it: a worker whose lease ran out finds another one here.
  lease uuid,
  leases integer not null default 0,
  dispatched_at timestamptz,
  primary key (tenant_id, sequence),
  unique (tenant_id, id)
);
create index events_waiting on events (occurred_at, id) where dispatched_at is null;
create index events_leased on events (lease) where dispatched_at is null;
create index events_done on events (dispatched_at) where dispatched_at is not null;

-- The last number given per tenant. Its row lock is held to the commit: that is what makes the
-- order of the numbers the order of the commits.
create table event_sequences (
  tenant_id uuid primary key,
  last bigint not null
);

-- Answers of requests that carried an idempotency key (decisions.md section 14).
create table idempotency_keys (
  -- The nil UUID for requests before there is a tenant.
  tenant_id uuid not null,
  -- Of scope and key: neither is needed in the clear.
  key_sha256 bytea not null check (length(key_sha256) = 32),
  fingerprint bytea not null,
  -- The outcome without its once-only secrets; null only inside the transaction that makes it.
  answer bytea,
  expires_at timestamptz not null,
  primary key (tenant_id, key_sha256)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at);

-- Takes a key, or tells what became of it. A concurrent duplicate waits for the first one to
-- commit, but not longer than the lock_timeout set here.
create function svc_claim_idempotency_key(
  claim_tenant_id uuid, claim_key bytea, claim_fingerprint bytea, lifetime interval
) returns table (state text, kept bytea)
language plpgsql set lock_timeout = '3s' as $$
declare
  found_row idempotency_keys;
begin
  loop
    insert into idempotency_keys as k (tenant_id, key_sha256, fingerprint, expires_at)
      values (claim_tenant_id, claim_key, claim_fingerprint, clock_timestamp() + lifetime)
      on conflict (tenant_id, key_sha256) do update
        set fingerprint = excluded.fingerprint, answer = null, expires_at = excluded.expires_at
        where k.expires_at <= clock_timestamp();
    if found then
      return query select 'fresh', null::bytea;
      return;
    end if;
    select * into found_row from idempotency_keys
      where tenant_id = claim_tenant_id and key_sha256 = claim_key;
    -- Swept between the two statements: try again.
    continue when not found;
    if found_row.fingerprint <> claim_fingerprint then
      return query select 'mismatch', null::bytea;
    else
      return query select 'replay', found_row.answer;
    end if;
    return;
  end loop;
exception
  when lock_not_available then
    return query select 'in_progress', null::bytea;
end
$$;

do $$
declare
  protected text;
begin
  foreach protected in array array['events', 'event_sequences', 'idempotency_keys'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- Coordination (throttles, replay caches, short locks) where there is neither Redis nor memcached.
-- Keys are digests; no tenant, no row-level security. Counters may be lost in a crash of the
-- server (unlogged: they are written with every request), what must happen once may not.
create unlogged table coordination_counters (
  key text primary key,
  used bigint not null,
  allowed boolean not null,
  ends_at timestamptz not null
) with (fillfactor = 50);
create index coordination_counters_end on coordination_counters (ends_at);

create table coordination_values (
  key text primary key,
  value bytea not null,
  expires_at timestamptz not null
);
create index coordination_values_expiry on coordination_values (expires_at);
