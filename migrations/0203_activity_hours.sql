-- Old processes may keep running: the function numbers as before. It also counts.

-- What happened in a tenant, by hour (UTC). Who numbers the events of a tenant holds its head, and counts them in the same
-- statement; deliveries are counted with their batches. So no two processes wait for a row for longer than a commit.
create table activity_hours (
  tenant_id uuid not null,
  kind text not null check (kind in ('sign_ins', 'tokens', 'egress', 'deliveries')),
  hour timestamptz not null,
  total bigint not null,
  -- Of those: refused or failed.
  failed bigint not null,
  primary key (tenant_id, kind, hour)
) with (fillfactor = 50);
create index activity_hours_in_time on activity_hours (hour);

alter table activity_hours enable row level security;
alter table activity_hours force row level security;
create policy tenant on activity_hours using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create or replace function svc_number_tenants(named uuid[], most integer, waits boolean)
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
  with logged as (
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
      grant_id text, resource jsonb, outcome text, request_id text, ip text, data jsonb)
    returning tenant_id, type, occurred_at, outcome)
  insert into activity_hours as a (tenant_id, kind, hour, total, failed)
  select l.tenant_id, k.kind, date_trunc('hour', l.occurred_at, 'UTC'), count(*),
    count(*) filter (where l.outcome <> 'success')
  from logged l
  join (values ('auth.login.success', 'sign_ins'), ('auth.login.failure', 'sign_ins'),
    ('auth.token.issued', 'tokens'), ('egress.stream.closed', 'egress')) as k (type, kind) on k.type = l.type
  group by 1, 2, 3
  on conflict (tenant_id, kind, hour) do update
  set total = a.total + excluded.total, failed = a.failed + excluded.failed;
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
