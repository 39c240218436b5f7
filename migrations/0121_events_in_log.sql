-- Old processes may keep running: until the database is finished (0130) they find their events where they were.

-- An event and its audit record held the same members twice. From now on the audit log can hold an event alone: its number,
-- and what its data has besides the record. `events` gets no rows any more once every process reads the log.

-- The number of the event that the record is of. A record without an event has the number of the event before it, so that
-- numbers ascend with the sequence. Null in records whose events are in `events`.
alter table audit_events add column event_number bigint;
-- True: actor, resource and request id of the event are those of the record. An object: its members instead. Null: the
-- record is of no event.
alter table audit_events add column event_about jsonb;
-- The same for events without a number. Processes of the release before write `data` instead.
-- A row has one event or several of one transaction: then it has the id, type and time of the first, a line for each in `line`,
-- and here an array with an element for each.
alter table unnumbered_events add column event_about jsonb;
-- Rows of several events stay in one page, without compression.
alter table unnumbered_events set (toast_tuple_target = 8160);
-- The first event whose record in the audit log holds it. Events before it are in `events`.
alter table event_sequences add column log_from bigint;

-- Numbered events of tenants with active webhooks, until their deliveries exist.
create table waiting_events (
  tenant_id uuid not null,
  -- Of the audit record.
  sequence bigint not null,
  occurred_at timestamptz not null,
  primary key (tenant_id, sequence)
) with (
  -- All rows are short-lived.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = -1
);
create index waiting_events_oldest on waiting_events (occurred_at, tenant_id, sequence);
alter table waiting_events enable row level security;
alter table waiting_events force row level security;
create policy tenant on waiting_events
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- True when every process reads events from the audit log.
create function svc_events_in_log() returns boolean
language sql immutable parallel safe as $$ select false $$;

-- The data of an event, from its audit record.
create function svc_event_data(about jsonb, subject jsonb, resource jsonb, request_id text, data jsonb) returns jsonb
language sql immutable parallel safe as $$
  select data || case when jsonb_typeof(about) = 'object' then about else
    case when subject is null then '{}'
      else jsonb_build_object('actor', jsonb_build_object('type', subject -> 'subject_type', 'id', subject -> 'sub')) end
    || case when resource is null then '{}' else jsonb_build_object('resource', resource) end
    || jsonb_build_object('request_id', request_id)
  end
$$;

-- `event_about` of an event that a process of the release before recorded.
create function svc_event_about(data jsonb) returns jsonb
language sql immutable parallel safe as $$
  select coalesce(jsonb_object_agg(m.key, m.value), '{}') from jsonb_each(data) m
  where m.key in ('actor', 'resource', 'request_id')
$$;

-- The audit record after which the events after a number are. It searches by halves, because numbers ascend with the
-- sequence.
create function svc_log_position(whose uuid, after bigint) returns bigint
language plpgsql stable as $$
declare
  low bigint := 0;
  high bigint;
  middle bigint;
  number bigint;
begin
  select s.audit_last into high from event_sequences s where s.tenant_id = whose;
  -- Records up to `low` have no later event. Records from `high` on have.
  high := coalesce(high, 0) + 1;
  while high - low > 1 loop
    middle := (low + high) / 2;
    select a.event_number into number from audit_events a where a.tenant_id = whose and a.sequence = middle;
    if coalesce(number, 0) > after then
      high := middle;
    else
      low := middle;
    end if;
  end loop;
  return low;
end
$$;

-- All events of the transaction's tenants, wherever they are.
create view all_events with (security_invoker = true) as
  select e.tenant_id, e.sequence, e.id, e.type, e.data, e.occurred_at from events e
  where not exists (
    select from event_sequences s where s.tenant_id = e.tenant_id and s.log_from <= e.sequence)
  union all
  select a.tenant_id, a.event_number, a.id, a.type,
    svc_event_data(a.event_about, a.subject, a.resource, a.request_id, a.data), a.occurred_at
  from audit_events a where a.event_about is not null;

-- Numbers and chains the events of up to `most` rows of each of some tenants, with one statement of each kind for all of them. Waits for
-- locked heads, or leaves their tenants out. `waiting` of the events wait for dispatch, and `oldest` is the time of the first.
create function svc_number_tenants(named uuid[], most integer, waits boolean)
returns table (tenant_id uuid, numbered integer, waiting integer, oldest timestamptz)
language plpgsql
-- There are no statistics of short-lived rows: PostgreSQL would read all of unnumbered_events, and plan each pass anew.
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  in_log constant boolean := svc_events_in_log();
  -- The heads that are locked, in the order of their tenants, and what is known of each.
  heads uuid[];
  lasts bigint[];
  audit_lasts bigint[];
  audit_hashes bytea[];
  have_webhooks boolean[];
  counts bigint[];
  told bigint[];
  olds timestamptz[];
  -- The rows of records, in the order of the heads and of their places.
  row_heads bigint[];
  row_places bigint[];
  row_types text[];
  row_times timestamptz[];
  row_lines text[];
  row_abouts jsonb[];
  -- The records, in the same order.
  head_of bigint[];
  are_events boolean[];
  times timestamptz[];
  lines text[];
  abouts jsonb[];
  numbers bigint[] := '{}';
  -- Of each head its hash, and after it the hashes of its records: that of record n of head h is at n + h.
  hashes bytea[] := '{}';
  -- Of each head: the number of records before its first one.
  before bigint[];
  nth bigint := 0;
  head bigint := 0;
  first bigint;
  number bigint;
  line text;
  entry_hash bytea;
begin
  insert into event_sequences (tenant_id, last)
  select n.id, 0 from unnest(named) n (id)
  where not exists (select from event_sequences s where s.tenant_id = n.id)
  on conflict do nothing;
  if waits then
    perform from event_sequences s where s.tenant_id = any(named) order by s.tenant_id for update;
  end if;
  select array_agg(s.tenant_id), array_agg(s.last), array_agg(s.audit_last), array_agg(s.audit_hash),
    array_agg(exists (select from webhooks w where w.tenant_id = s.tenant_id and w.active))
  into heads, lasts, audit_lasts, audit_hashes, have_webhooks
  from (
    select s.tenant_id, s.last, s.audit_last, s.audit_hash from event_sequences s
    where s.tenant_id = any(named) order by s.tenant_id for update skip locked) s;
  -- A new snapshot: it has the records of every transaction that held a head before.
  select array_agg(u.nth), array_agg(u.place), array_agg(u.type), array_agg(u.occurred_at), array_agg(u.line),
    array_agg(u.about)
  into row_heads, row_places, row_types, row_times, row_lines, row_abouts
  from (
    select h.nth, u.* from unnest(heads) with ordinality h (tenant_id, nth)
    cross join lateral (
      select v.place, v.type, v.occurred_at, v.line,
        case when v.data is null then v.event_about else svc_event_about(v.data) end as about
      from unnumbered_events v
      where v.tenant_id = h.tenant_id order by v.place limit most) u) u;
  select array_agg(u.head), array_agg(u.about is not null), array_agg(u.occurred_at), array_agg(u.line),
    array_agg(u.about)
  into head_of, are_events, times, lines, abouts
  from (
    select r.head, r.occurred_at, l.line,
      case jsonb_typeof(r.about) when 'array' then r.about -> (l.nth - 1)::integer else r.about end as about
    from unnest(row_heads, row_times, row_lines, row_abouts) as r (head, occurred_at, line, about)
    cross join lateral unnest(string_to_array(r.line, chr(10))) with ordinality as l (line, nth)) u;
  if lines is null then
    return;
  end if;
  -- Per head of the pass, also of one whose records another sequencer has numbered in the meantime.
  select array_agg(c.count), array_agg(c.told), array_agg(c.oldest), array_agg(c.before)
  into counts, told, olds, before
  from (
    select h.nth, count(e.head), count(e.head) filter (where e.is_event) as told, min(e.occurred_at) as oldest,
      sum(count(e.head)) over (order by h.nth)::bigint - count(e.head) as before
    from generate_subscripts(heads, 1) h (nth)
    left join unnest(head_of, times, are_events) e (head, occurred_at, is_event) on e.head = h.nth
    group by h.nth order by h.nth) c;
  foreach line in array lines loop
    nth := nth + 1;
    if head <> head_of[nth] then
      -- A head without records has one entry too, its own.
      for other in head + 1 .. head_of[nth] loop
        if head > 0 then
          audit_hashes[head] := entry_hash;
        end if;
        head := other;
        entry_hash := audit_hashes[head];
        hashes := array_append(hashes, entry_hash);
      end loop;
      first := audit_lasts[head] - before[head];
      number := lasts[head];
    end if;
    entry_hash := sha256(convert_to('svc-audit-v1' || chr(10) || encode(entry_hash, 'hex')
      || chr(10) || (first + nth) || chr(10) || line, 'UTF8'));
    hashes := array_append(hashes, entry_hash);
    if are_events[nth] then
      number := number + 1;
    end if;
    numbers := array_append(numbers, number);
  end loop;
  audit_hashes[head] := entry_hash;
  -- Calls without an end are found by the rows of their events, and a second end of a call violates their key. Each of these
  -- events has a row of its own.
  if not in_log or row_types && array['vault.credential.accessed', 'egress.stream.closed'] then
    insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
    select heads[e.head], e.number, m.id, m.type,
      case when in_log then '{}' else svc_event_data(e.about, m.subject, m.resource, m.request_id, m.data) end,
      m.occurred_at, case when in_log or not have_webhooks[e.head] then statement_timestamp() end
    from unnest(head_of, numbers, are_events, lines, abouts) as e (head, number, is_event, line, about)
    cross join lateral jsonb_to_record(e.line::jsonb) as m (id uuid, type text, occurred_at timestamptz,
      subject jsonb, resource jsonb, request_id text, data jsonb)
    where e.is_event and (not in_log or m.type in ('vault.credential.accessed', 'egress.stream.closed'));
  end if;
  insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
    delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash,
    event_number, event_about)
  select heads[l.head], audit_lasts[l.head] - before[l.head] + l.nth, m.id, m.type, m.occurred_at,
    m.subject, m.actors, m.client_id, m.delegation_id, m.grant_id, m.resource, m.outcome,
    m.request_id, m.ip, m.data, hashes[l.nth + l.head - 1], hashes[l.nth + l.head],
    case when in_log then l.number end, case when in_log then l.about end
  from unnest(head_of, lines, numbers, abouts) with ordinality as l (head, line, number, about, nth)
  cross join lateral jsonb_to_record(l.line::jsonb) as m (id uuid, type text,
    occurred_at timestamptz, subject jsonb, actors jsonb, client_id text, delegation_id text,
    grant_id text, resource jsonb, outcome text, request_id text, ip text, data jsonb);
  if in_log and true = any(have_webhooks) then
    insert into waiting_events (tenant_id, sequence, occurred_at)
    select a.tenant_id, a.sequence, a.occurred_at
    from unnest(heads, audit_lasts, have_webhooks) as h (tenant_id, audit_last, has_webhooks)
    join audit_events a on a.tenant_id = h.tenant_id and a.sequence > h.audit_last
    where h.has_webhooks and a.event_about is not null;
  end if;
  delete from unnumbered_events u using unnest(row_heads, row_places) as r (head, place)
  where u.tenant_id = heads[r.head] and u.place = r.place;
  update event_sequences s set last = s.last + h.told, audit_last = s.audit_last + h.numbered,
    audit_hash = h.hash, log_from = case when in_log then coalesce(s.log_from, s.last + 1) end
  from unnest(heads, audit_hashes, counts, told) as h (tenant_id, hash, numbered, told)
  where s.tenant_id = h.tenant_id and h.numbered > 0;
  return query
  select h.tenant_id, h.numbered::integer, case when h.has_webhooks then h.told else 0 end::integer, h.oldest
  from unnest(heads, counts, told, olds, have_webhooks)
    as h (tenant_id, numbered, told, oldest, has_webhooks);
end
$$;

-- Numbers the events of up to `most` rows of one tenant. Waits for the lock of its head.
create or replace function svc_number_events(whose uuid, most integer, out numbered integer, out waiting integer,
  out oldest timestamptz)
language plpgsql as $$
begin
  perform from event_sequences s where s.tenant_id = whose for update;
  begin
    select n.numbered, n.waiting, n.oldest into numbered, waiting, oldest
    from svc_number_tenants(array[whose], most, true) n;
    numbered := coalesce(numbered, 0);
    waiting := coalesce(waiting, 0);
  exception when unique_violation then
    -- Two processes recorded the end of one call. The first record counts, and the next pass numbers the rest.
    delete from unnumbered_events u where u.tenant_id = whose and (
      exists (select from events e where e.tenant_id = whose and e.id = u.id)
      or exists (select from unnumbered_events v
        where v.tenant_id = whose and v.id = u.id and v.place < u.place));
    if not found then
      raise;
    end if;
    numbered := most;
    waiting := 0;
    oldest := null;
  end;
end
$$;

-- One pass of a sequencer over the tenants after a tenant. Leaves out a tenant whose head is locked: another sequencer or a
-- reader numbers its events. When the events of one tenant cannot be numbered, the pass starts again with each tenant of its
-- own.
create or replace function svc_number_waiting(after uuid, tenants integer, most integer)
returns table (tenant_id uuid, numbered integer, waiting integer, oldest timestamptz, failure text)
language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  -- Tenants with waiting events.
  named uuid[];
begin
  with recursive t (id) as (
    (select u.tenant_id from unnumbered_events u
     where u.tenant_id > after order by u.tenant_id limit 1)
    union all
    select (select u.tenant_id from unnumbered_events u
            where u.tenant_id > t.id order by u.tenant_id limit 1)
    from t where t.id is not null
  )
  select array_agg(f.id) into named
  from (select t.id from t where t.id is not null limit tenants) f;
  if named is null then
    return;
  end if;
  begin
    return query
    select n.id, coalesce(h.numbered, 0), coalesce(h.waiting, 0), h.oldest,
      case when h.tenant_id is null then 'locked' end
    from unnest(named) with ordinality n (id, place)
    left join svc_number_tenants(named, most, false) h on h.tenant_id = n.id
    order by n.place;
    return;
  exception when others then
    null;
  end;
  return query select * from svc_number_each(after, tenants, most);
end
$$;
