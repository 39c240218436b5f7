-- Old processes may number events in their own transactions beside new ones: both lock the head of the tenant.

-- Events of committed transactions that have no number yet. A transaction inserts its events here without a lock that
-- other transactions wait for. A sequencer numbers, chains and removes them.
create table unnumbered_events (
  tenant_id uuid not null,
  -- The order of insertion. An event that was acknowledged before another one began has the smaller place.
  place bigint generated always as identity,
  id uuid not null,
  type text not null,
  occurred_at timestamptz not null,
  -- The JSON for receivers. Null for an event that is only audited.
  data jsonb,
  -- The audit record in the form that is hashed.
  line text not null,
  primary key (tenant_id, place)
) with (
  -- All rows are short-lived, so the table is vacuumed every minute while it is used.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000000
);
alter table unnumbered_events enable row level security;
alter table unnumbered_events force row level security;
create policy tenant on unnumbered_events
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Numbers and chains up to `most` events of one tenant. Takes the lock of its head. `waiting` of them wait for dispatch,
-- and `oldest` is the time of the first.
create function svc_number_events(whose uuid, most integer, out numbered integer, out waiting integer,
  out oldest timestamptz)
language plpgsql as $$
declare
  head record;
  ids uuid[];
  types text[];
  moments timestamptz[];
  datas jsonb[];
  lines text[];
  hashes bytea[];
  entry_hash bytea;
  told integer;
  dispatched timestamptz;
begin
  select last, audit_last, audit_hash into head
  from event_sequences where tenant_id = whose for update;
  if not found then
    insert into event_sequences (tenant_id, last) values (whose, 0) on conflict do nothing;
    select last, audit_last, audit_hash into head
    from event_sequences where tenant_id = whose for update;
  end if;
  with taken as (
    delete from unnumbered_events where tenant_id = whose and place in (
      select u.place from unnumbered_events u where u.tenant_id = whose order by u.place limit most)
    returning place, id, type, occurred_at, data, line),
  -- Two processes can record the end of one call. The first one counts.
  once as (
    select distinct on (t.id) t.* from taken t
    where not exists (select from events e where e.tenant_id = whose and e.id = t.id)
    order by t.id, t.place)
  select array_agg(id order by place), array_agg(type order by place),
    array_agg(occurred_at order by place), array_agg(data order by place),
    array_agg(line order by place), count(data), (select count(*) from taken), min(once.occurred_at)
  into ids, types, moments, datas, lines, told, numbered, oldest from once;
  waiting := 0;
  if ids is null then
    return;
  end if;
  entry_hash := head.audit_hash;
  hashes := array[entry_hash];
  for nth in 1 .. cardinality(lines) loop
    entry_hash := sha256(convert_to('svc-audit-v1' || chr(10) || encode(entry_hash, 'hex')
      || chr(10) || (head.audit_last + nth) || chr(10) || lines[nth], 'UTF8'));
    hashes := array_append(hashes, entry_hash);
  end loop;
  dispatched := case when exists (select from webhooks w where w.tenant_id = whose and w.active)
    then null else statement_timestamp() end;
  insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
  select whose, head.last + row_number() over (order by e.nth), e.id, e.type, e.data, e.moment, dispatched
  from unnest(ids, types, moments, datas) with ordinality as e (id, type, moment, data, nth)
  where e.data is not null;
  insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
    delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash)
  select whose, head.audit_last + e.nth, ids[e.nth], types[e.nth], moments[e.nth],
    nullif(e.members -> 'subject', 'null'), e.members -> 'actors', e.members ->> 'client_id',
    e.members ->> 'delegation_id', e.members ->> 'grant_id', nullif(e.members -> 'resource', 'null'),
    e.members ->> 'outcome', e.members ->> 'request_id', e.members ->> 'ip',
    e.members -> 'data', hashes[e.nth], hashes[e.nth + 1]
  from (
    select l.nth, l.line::jsonb as members
    from unnest(lines) with ordinality as l (line, nth) offset 0
  ) e;
  update event_sequences set last = last + told, audit_last = head.audit_last + cardinality(lines),
    audit_hash = entry_hash
  where tenant_id = whose;
  waiting := case when dispatched is null then told else 0 end;
end
$$;

-- One pass of a sequencer over the tenants after a tenant. Leaves out a tenant whose head is locked: another
-- sequencer or a reader numbers its events. A tenant whose events cannot be numbered does not stop the others.
create function svc_number_waiting(after uuid, tenants integer, most integer)
returns table (tenant_id uuid, numbered integer, waiting integer, oldest timestamptz, failure text)
language plpgsql as $$
declare
  whose uuid := after;
begin
  for nth in 1 .. tenants loop
    select u.tenant_id into whose from unnumbered_events u
    where u.tenant_id > whose order by u.tenant_id limit 1;
    exit when whose is null;
    tenant_id := whose;
    numbered := 0;
    waiting := 0;
    oldest := null;
    failure := null;
    begin
      perform from event_sequences s where s.tenant_id = whose for update nowait;
      select n.numbered, n.waiting, n.oldest into numbered, waiting, oldest
      from svc_number_events(whose, most) n;
    exception
      when lock_not_available then
        numbered := 0;
        failure := 'locked';
      when others then
        numbered := 0;
        failure := sqlstate || ' ' || sqlerrm;
    end;
    return next;
  end loop;
end
$$;
