-- Old processes may keep running: both lock the head of a tenant when they number its events.

-- No statement can use it: it selects by subject or by actor.
drop index audit_events_by_subject;

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
  places bigint[];
  lines text[];
  line text;
  nth bigint := 0;
  hashes bytea[];
  entry_hash bytea;
  told integer;
  dispatched timestamptz;
begin
  waiting := 0;
  select last, audit_last, audit_hash into head
  from event_sequences where tenant_id = whose for update;
  if not found then
    insert into event_sequences (tenant_id, last) values (whose, 0) on conflict do nothing;
    select last, audit_last, audit_hash into head
    from event_sequences where tenant_id = whose for update;
  end if;
  select array_agg(u.place), array_agg(u.line), count(*), min(u.occurred_at)
  into places, lines, numbered, oldest
  from (
    select * from unnumbered_events where tenant_id = whose order by place limit most) u;
  if numbered = 0 then
    return;
  end if;
  entry_hash := head.audit_hash;
  hashes := array[entry_hash];
  foreach line in array lines loop
    nth := nth + 1;
    entry_hash := sha256(convert_to('svc-audit-v1' || chr(10) || encode(entry_hash, 'hex')
      || chr(10) || (head.audit_last + nth) || chr(10) || line, 'UTF8'));
    hashes := array_append(hashes, entry_hash);
  end loop;
  dispatched := case when exists (select from webhooks w where w.tenant_id = whose and w.active)
    then null else statement_timestamp() end;
  begin
    insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
    select whose, head.last + row_number() over (), u.id, u.type, u.data, u.occurred_at, dispatched
    from (
      select * from unnumbered_events
      where tenant_id = whose and place = any(places) and data is not null order by place) u;
    get diagnostics told = row_count;
  exception when unique_violation then
    -- Two processes recorded the end of one call. The first record counts, and the next pass numbers the rest.
    delete from unnumbered_events u where u.tenant_id = whose and u.place = any(places) and (
      exists (select from events e where e.tenant_id = whose and e.id = u.id)
      or exists (select from unnumbered_events v
        where v.tenant_id = whose and v.id = u.id and v.place < u.place));
    if not found then
      raise;
    end if;
    numbered := most;
    oldest := null;
    return;
  end;
  insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
    delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash)
  select whose, head.audit_last + e.nth, (e.members ->> 'id')::uuid, e.members ->> 'type',
    (e.members ->> 'occurred_at')::timestamptz, nullif(e.members -> 'subject', 'null'),
    e.members -> 'actors', e.members ->> 'client_id', e.members ->> 'delegation_id',
    e.members ->> 'grant_id', nullif(e.members -> 'resource', 'null'),
    e.members ->> 'outcome', e.members ->> 'request_id', e.members ->> 'ip',
    e.members -> 'data', hashes[e.nth], hashes[e.nth + 1]
  from (
    select l.nth, l.line::jsonb as members
    from unnest(lines) with ordinality as l (line, nth) offset 0
  ) e;
  delete from unnumbered_events where tenant_id = whose and place = any(places);
  update event_sequences set last = last + told, audit_last = head.audit_last + numbered,
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
