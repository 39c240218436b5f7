-- Old processes may keep running: they call the same function, with the same result.

-- The former svc_number_waiting: a statement of each kind for every tenant, each in a subtransaction. It finds the tenant
-- whose events cannot be numbered.
create function svc_number_each(after uuid, tenants integer, most integer)
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

-- One pass of a sequencer over the tenants after a tenant: one statement of each kind for all of them. Leaves out a tenant
-- whose head is locked: another sequencer or a reader numbers its events. When the events of one tenant cannot be numbered,
-- the pass starts again with each tenant of its own.
create or replace function svc_number_waiting(after uuid, tenants integer, most integer)
returns table (tenant_id uuid, numbered integer, waiting integer, oldest timestamptz, failure text)
language plpgsql
-- There are no statistics of short-lived rows: PostgreSQL would read all of unnumbered_events, and plan each pass anew.
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  -- Tenants with waiting events.
  named uuid[];
  -- The heads that are locked, in the order of their tenants, and what is known of each.
  heads uuid[];
  lasts bigint[];
  audit_lasts bigint[];
  audit_hashes bytea[];
  dispatched timestamptz[];
  counts bigint[];
  told bigint[];
  olds timestamptz[];
  -- The events, in the order of the heads and of their places.
  head_of bigint[];
  places bigint[];
  ids uuid[];
  types text[];
  times timestamptz[];
  datas jsonb[];
  lines text[];
  -- Of each head its hash, and after it the hashes of its events: that of event n of head h is at n + h.
  hashes bytea[] := '{}';
  -- Of each head: the number of events before its first one.
  before bigint[];
  nth bigint := 0;
  head bigint := 0;
  first bigint;
  line text;
  entry_hash bytea;
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
    insert into event_sequences (tenant_id, last)
    select n.id, 0 from unnest(named) n (id)
    where not exists (select from event_sequences s where s.tenant_id = n.id)
    on conflict do nothing;
    select array_agg(s.tenant_id), array_agg(s.last), array_agg(s.audit_last),
      array_agg(s.audit_hash), array_agg(case when exists (
        select from webhooks w where w.tenant_id = s.tenant_id and w.active)
        then null else statement_timestamp() end)
    into heads, lasts, audit_lasts, audit_hashes, dispatched
    from (
      select s.tenant_id, s.last, s.audit_last, s.audit_hash from event_sequences s
      where s.tenant_id = any(named) order by s.tenant_id for update skip locked) s;
    -- A new snapshot: it has the events of every transaction that held a head before.
    select array_agg(u.nth), array_agg(u.place), array_agg(u.id), array_agg(u.type),
      array_agg(u.occurred_at), array_agg(u.data), array_agg(u.line)
    into head_of, places, ids, types, times, datas, lines
    from (
      select h.nth, u.* from unnest(heads) with ordinality h (tenant_id, nth)
      cross join lateral (
        select v.place, v.id, v.type, v.occurred_at, v.data, v.line from unnumbered_events v
        where v.tenant_id = h.tenant_id order by v.place limit most) u) u;
    if lines is not null then
      -- Per head of the page, also of one whose events another sequencer has numbered in the meantime.
      select array_agg(c.count), array_agg(c.told), array_agg(c.oldest), array_agg(c.before)
      into counts, told, olds, before
      from (
        select h.nth, count(e.head), count(e.data) as told, min(e.occurred_at) as oldest,
          sum(count(e.head)) over (order by h.nth)::bigint - count(e.head) as before
        from generate_subscripts(heads, 1) h (nth)
        left join unnest(head_of, times, datas) e (head, occurred_at, data) on e.head = h.nth
        group by h.nth order by h.nth) c;
      foreach line in array lines loop
        nth := nth + 1;
        if head <> head_of[nth] then
          -- A head without events has one entry too, its own.
          for other in head + 1 .. head_of[nth] loop
            if head > 0 then
              audit_hashes[head] := entry_hash;
            end if;
            head := other;
            entry_hash := audit_hashes[head];
            hashes := array_append(hashes, entry_hash);
          end loop;
          first := audit_lasts[head] - before[head];
        end if;
        entry_hash := sha256(convert_to('svc-audit-v1' || chr(10) || encode(entry_hash, 'hex')
          || chr(10) || (first + nth) || chr(10) || line, 'UTF8'));
        hashes := array_append(hashes, entry_hash);
      end loop;
      audit_hashes[head] := entry_hash;
      insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
      select heads[e.head], lasts[e.head] + row_number() over (partition by e.head order by e.nth),
        e.id, e.type, e.data, e.occurred_at, dispatched[e.head]
      from unnest(head_of, ids, types, datas, times) with ordinality
        as e (head, id, type, data, occurred_at, nth)
      where e.data is not null;
      insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
        delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash)
      select heads[l.head], audit_lasts[l.head] - before[l.head] + l.nth, m.id, m.type, m.occurred_at,
        m.subject, m.actors, m.client_id, m.delegation_id, m.grant_id, m.resource, m.outcome,
        m.request_id, m.ip, m.data, hashes[l.nth + l.head - 1], hashes[l.nth + l.head]
      from unnest(head_of, lines) with ordinality as l (head, line, nth)
      cross join lateral jsonb_to_record(l.line::jsonb) as m (id uuid, type text,
        occurred_at timestamptz, subject jsonb, actors jsonb, client_id text, delegation_id text,
        grant_id text, resource jsonb, outcome text, request_id text, ip text, data jsonb);
      delete from unnumbered_events u using unnest(head_of, places) as e (head, place)
      where u.tenant_id = heads[e.head] and u.place = e.place;
      update event_sequences s set last = s.last + h.told, audit_last = s.audit_last + h.numbered,
        audit_hash = h.hash
      from unnest(heads, audit_hashes, counts, told) as h (tenant_id, hash, numbered, told)
      where s.tenant_id = h.tenant_id and h.numbered > 0;
    end if;
    return query
    select n.id, coalesce(h.numbered, 0)::integer,
      case when h.dispatched is null then coalesce(h.told, 0) else 0 end::integer, h.oldest,
      case when h.tenant_id is null then 'locked' end
    from unnest(named) with ordinality n (id, place)
    left join unnest(heads, counts, told, olds, dispatched)
      as h (tenant_id, numbered, told, oldest, dispatched) on h.tenant_id = n.id
    order by n.place;
    return;
  exception when others then
    null;
  end;
  return query select * from svc_number_each(after, tenants, most);
end
$$;
