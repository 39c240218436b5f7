-- What the migrations come to. Written by `node dist/test/support/storage/write-schema.js`.

CREATE OR REPLACE FUNCTION public.browser_sessions_confine()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.confined := exists (select from sso_providers p
    where p.tenant_id = new.tenant_id and p.id::text = new.provider);
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.svc_announce(channel text, payload text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if current_setting('svc.announce', true) = 'table' then
    insert into announcements (channel, payload) values (svc_announce.channel, svc_announce.payload);
  else
    perform pg_notify(channel, payload);
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_agent()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_standing', coalesce(new.agent_id, old.agent_id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_egress()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_egress', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_person()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_standing', coalesce(new.sub, old.sub));
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_policies()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_standing', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_secret()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_standing', coalesce(new.application_id, old.application_id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_signing_keys()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_signing_keys', '');
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_standing()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_standing', coalesce(new.id, old.id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_announce_tenant()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_announce('svc_tenants', coalesce(new.id, old.id)::text);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_append_audit(canonicals text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_append_events(tenant_ids uuid[], ids uuid[], types text[], bodies text, occurred timestamp with time zone[], canonicals text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  datas text[] := string_to_array(bodies, chr(10));
  lines text[] := string_to_array(canonicals, chr(10));
  whose uuid;
  places integer[];
  head record;
  place integer;
  entry_sequence bigint;
  entry_hash bytea;
  hashes bytea[];
  dispatched timestamptz;
  waiting bigint := 0;
begin
  for whose, places in
    select g.tenant_id, array_agg(g.place::integer order by g.place)
    from unnest(tenant_ids) with ordinality as g (tenant_id, place)
    group by g.tenant_id order by g.tenant_id
  loop
    select last, audit_last, audit_hash into head
    from event_sequences where tenant_id = whose for update;
    if not found then
      insert into event_sequences (tenant_id, last) values (whose, 0) on conflict do nothing;
      select last, audit_last, audit_hash into head
      from event_sequences where tenant_id = whose for update;
    end if;
    hashes := array[head.audit_hash];
    entry_hash := head.audit_hash;
    entry_sequence := head.audit_last;
    foreach place in array places loop
      entry_sequence := entry_sequence + 1;
      entry_hash := sha256(convert_to('svc-audit-v1' || chr(10) || encode(entry_hash, 'hex')
        || chr(10) || entry_sequence || chr(10) || lines[place], 'UTF8'));
      hashes := array_append(hashes, entry_hash);
    end loop;
    dispatched := case when exists (select from webhooks w where w.tenant_id = whose and w.active)
      then null else statement_timestamp() end;
    if dispatched is null then
      waiting := waiting + cardinality(places);
    end if;
    insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
    select whose, head.last + p.nth, ids[p.place], types[p.place], datas[p.place]::jsonb,
      occurred[p.place], dispatched
    from unnest(places) with ordinality as p (place, nth);
    insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, client_id,
      delegation_id, grant_id, resource, outcome, request_id, ip, data, previous_hash, hash)
    select whose, head.audit_last + e.nth, (e.members ->> 'id')::uuid, e.members ->> 'type',
      (e.members ->> 'occurred_at')::timestamptz, nullif(e.members -> 'subject', 'null'),
      e.members -> 'actors', e.members ->> 'client_id', e.members ->> 'delegation_id',
      e.members ->> 'grant_id', nullif(e.members -> 'resource', 'null'),
      e.members ->> 'outcome', e.members ->> 'request_id', e.members ->> 'ip',
      e.members -> 'data', hashes[e.nth], hashes[e.nth + 1]
    from (
      select p.nth, lines[p.place]::jsonb as members
      from unnest(places) with ordinality as p (place, nth) offset 0
    ) e;
    update event_sequences set last = last + cardinality(places), audit_last = entry_sequence,
      audit_hash = entry_hash
    where tenant_id = whose;
  end loop;
  return waiting;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_application_origins()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  listed text[] := new.allowed_origins || svc_redirect_origins(new.redirect_uris, new.loopback_any_port);
begin
  delete from application_origins
  where tenant_id = new.tenant_id and application_id = new.id and origin <> all (listed);
  insert into application_origins (tenant_id, application_id, origin)
  select distinct new.tenant_id, new.id, o from unnest(listed) o
  on conflict do nothing;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_billing_follows()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update tenants set billing = svc_billing_of(new.id) where organization_id = new.id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_billing_of(organization uuid)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  select case when o.billing_plan_id is null and o.billing_suspended_at is null then null
    else jsonb_build_object('features', to_jsonb(p.features), 'suspended', o.billing_suspended_at is not null) end
  from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = organization
$function$;

CREATE OR REPLACE FUNCTION public.svc_claim_idempotency_key(claim_tenant_id uuid, claim_key bytea, claim_fingerprint bytea, lifetime interval)
 RETURNS TABLE(state text, kept bytea)
 LANGUAGE plpgsql
 SET lock_timeout TO '3s'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_event_about(data jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select coalesce(jsonb_object_agg(m.key, m.value), '{}') from jsonb_each(data) m
  where m.key in ('actor', 'resource', 'request_id')
$function$;

CREATE OR REPLACE FUNCTION public.svc_event_data(about jsonb, subject jsonb, resource jsonb, request_id text, data jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select data || case when jsonb_typeof(about) = 'object' then about else
    case when subject is null then '{}'
      else jsonb_build_object('actor', jsonb_build_object('type', subject -> 'subject_type', 'id', subject -> 'sub')) end
    || case when resource is null then '{}' else jsonb_build_object('resource', resource) end
    || jsonb_build_object('request_id', request_id)
  end
$function$;

CREATE OR REPLACE FUNCTION public.svc_events_in_log()
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ select true $function$;

CREATE OR REPLACE FUNCTION public.svc_ledger_balance()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into ledger_accounts as a (tenant_id, currency, rail, account, balance_minor)
    values (new.tenant_id, new.currency, new.rail, new.account, new.amount_minor)
    on conflict (tenant_id, currency, rail, account)
    do update set balance_minor = a.balance_minor + excluded.balance_minor;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_ledger_balanced()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform svc_ledger_require_balance(new.tenant_id,
    case when tg_table_name = 'ledger_lines' then (to_jsonb(new) ->> 'entry_id')::uuid
         else (to_jsonb(new) ->> 'id')::uuid end);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_ledger_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'the ledger is only added to' using errcode = 'check_violation',
    constraint = 'ledger_kept';
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_ledger_require_balance(tenant uuid, entry uuid)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  lines bigint;
  total numeric;
  strange bigint;
begin
  select count(*), coalesce(sum(l.amount_minor), 0), count(*) filter (where l.currency <> e.currency)
    into lines, total, strange
    from ledger_lines l join ledger_entries e on e.tenant_id = l.tenant_id and e.id = l.entry_id
    where l.tenant_id = tenant and l.entry_id = entry;
  if lines < 2 or total <> 0 or strange > 0 then
    raise exception 'ledger entry % does not balance', entry
      using errcode = 'check_violation', constraint = 'ledger_balanced';
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_limit_fixtures()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform from tenants where id = new.tenant_id for no key update;
  if (select count(*) from tenant_users where tenant_id = new.tenant_id and fixture
      and status = 'active' and id <> new.id) >= 5 then
    raise exception 'a tenant has at most five active fixture users'
      using errcode = 'check_violation', constraint = 'fixture_user_limit';
  end if;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_log_position(whose uuid, after bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_named(tenant_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select strpos(current_setting('svc.tenant_ids', true), tenant_id::text) > 0
$function$;

CREATE OR REPLACE FUNCTION public.svc_number_each(after uuid, tenants integer, most integer)
 RETURNS TABLE(tenant_id uuid, numbered integer, waiting integer, oldest timestamp with time zone, failure text)
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_number_events(whose uuid, most integer, OUT numbered integer, OUT waiting integer, OUT oldest timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_number_tenants(named uuid[], most integer, waits boolean)
 RETURNS TABLE(tenant_id uuid, numbered integer, waiting integer, oldest timestamp with time zone)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_number_waiting(after uuid, tenants integer, most integer)
 RETURNS TABLE(tenant_id uuid, numbered integer, waiting integer, oldest timestamp with time zone, failure text)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.svc_plan_follows()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update tenants t set billing = svc_billing_of(t.organization_id)
    from organizations o where o.id = t.organization_id and o.billing_plan_id = new.id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_redirect_origins(uris text[], any_port boolean)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select coalesce(array_agg(distinct regexp_replace(o, '^(https://.+):443$', '\1')), '{}') from (
    select lower((regexp_match(u, '^(https?://[^/?#]+)', 'i'))[1]) as o from unnest(uris) u
    union
    select lower((regexp_match(u, '^(http://(localhost|127\.0\.0\.1|\[::1\]))([:/?#]|$)', 'i'))[1])
    from unnest(uris) u where any_port) origins
  where o is not null
$function$;

CREATE OR REPLACE FUNCTION public.svc_refuse_audit_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'audit events are only ever added' using errcode = 'insufficient_privilege';
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_revoke_credentials_of_email()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  with revoked as (
    update issued_credentials c set revoked_at = now(), revoked_reason = 'email_changed'
    from tenant_users u
    where u.account_id = new.id and c.tenant_id = u.tenant_id and c.subject = u.sub
      and c.configuration_id = 'VerifiedEmail' and c.revoked_at is null
    returning c.tenant_id, c.list_id, c.idx, c.revoked_at)
  update status_entries e set invalid_at = r.revoked_at
  from revoked r
  where e.tenant_id = r.tenant_id and e.list_id = r.list_id and e.idx = r.idx and e.invalid_at is null;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.svc_seals_with_stamps()
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$ select true $function$;

CREATE OR REPLACE FUNCTION public.svc_sinks_due()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into event_sink_cursors as c (tenant_id, sink, sequence, due, due_since)
  select new.tenant_id, s.name, old.last, new.last, statement_timestamp() from event_sinks s
  on conflict (tenant_id, sink) do update
    set due = excluded.due, due_since = coalesce(c.due_since, excluded.due_since);
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_take(keys text[], costs bigint[], limits bigint[], windows_secs integer[])
 RETURNS TABLE(asked bigint, allowed boolean, used bigint, reset_secs double precision)
 LANGUAGE plpgsql
AS $function$
declare
  entry record;
begin
  for entry in
    select e.at, e.key, e.cost, e.lim, e.secs
    from unnest(keys, costs, limits, windows_secs) with ordinality as e (key, cost, lim, secs, at)
    order by e.key collate "C", e.at
  loop
    asked := entry.at;
    -- `held` is what the window has before this call: nothing once it has ended. A window that ends later than one that begins
    -- now is of a clock that was stepped back, and has ended too.
    insert into coordination_counters as c (key, used, allowed, ends_at)
    values (entry.key,
            case when entry.cost <= entry.lim then greatest(entry.cost, 0) else 0 end,
            entry.cost <= greatest(entry.lim, 0),
            clock_timestamp() + make_interval(secs => entry.secs))
    on conflict on constraint coordination_counters_pkey do update set (used, allowed, ends_at) = (
      select case when fits then greatest(held + entry.cost, 0) else held end, fits, ends
      from (select held, entry.cost <= 0 or held + entry.cost <= entry.lim as fits, ends
            from (select case when over then 0 else c.used end as held,
                         case when over then excluded.ends_at else c.ends_at end as ends
                  from (select c.ends_at not between clock_timestamp()
                          and clock_timestamp() + make_interval(secs => entry.secs + 10) as over) as a) as b) as d)
    returning c.allowed, c.used, extract(epoch from c.ends_at - clock_timestamp())
      into allowed, used, reset_secs;
    return next;
  end loop;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_tenant_billing()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.billing := svc_billing_of(new.organization_id);
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_tenant_inherits()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  parent record;
  contact text;
begin
  if tg_op = 'INSERT' then
    -- Ordered against the suspension of the organization: it waits, and then finds this tenant.
    select status, support_contact into parent
      from organizations where id = new.organization_id for share;
  else
    select status, support_contact into parent from organizations where id = new.organization_id;
  end if;
  new.status := case when new.suspended_at is not null or parent.status = 'suspended'
    then 'suspended' else 'active' end;
  contact := coalesce(new.support_contact, parent.support_contact);
  new.settings := case when contact is null then new.settings - 'support_contact'
    else new.settings || jsonb_build_object('support_contact', contact) end;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_tenant_user_inherits()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  account_status text;
begin
  select status into account_status from accounts where id = new.account_id for share;
  new.account_active := coalesce(account_status = 'active', true);
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_tenant_users_follow()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update tenant_users set account_active = (new.status = 'active') where account_id = new.id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_tenants_follow()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update tenants set suspended_at = suspended_at where organization_id = new.id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.svc_visible(tenant_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select tenant_id = nullif(current_setting('svc.tenant_id', true), '')::uuid
      or current_setting('svc.scope', true) = 'system'
$function$;

create table access_policies (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  enabled boolean not null,
  actions text[] not null,
  client_ids text[] not null,
  scopes text[] not null,
  allowed_networks text[] not null,
  denied_networks text[] not null,
  required_level smallint,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint access_policies_pkey PRIMARY KEY (tenant_id, id),
  constraint access_policies_id_key UNIQUE (id),
  constraint access_policies_actions_check CHECK (((cardinality(actions) > 0) AND (actions <@ ARRAY['sign_in'::text, 'token'::text]))),
  constraint access_policies_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255))),
  constraint access_policies_required_level_check CHECK (((required_level >= 1) AND (required_level <= 3))),
  constraint access_policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX access_policies_listed ON public.access_policies USING btree (tenant_id, created_at DESC, id DESC);
alter table access_policies enable row level security;
alter table access_policies force row level security;
create policy tenant on access_policies using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table account_phones (
  account_id uuid not null,
  phone_number text not null,
  proved_at timestamp with time zone not null,
  last_used_at timestamp with time zone,
  constraint account_phones_pkey PRIMARY KEY (account_id),
  constraint account_phones_phone_number_key UNIQUE (phone_number),
  constraint account_phones_phone_number_check CHECK ((phone_number ~ '^\+[1-9][0-9]{6,14}$'::text)),
  constraint account_phones_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
alter table account_phones enable row level security;
alter table account_phones force row level security;
create policy crossing on account_phones using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table account_wallets (
  account_id uuid not null,
  id uuid not null,
  address text not null,
  created_at timestamp with time zone not null,
  last_used_at timestamp with time zone,
  constraint account_wallets_pkey PRIMARY KEY (account_id, id),
  constraint account_wallets_address_key UNIQUE (address),
  constraint account_wallets_address_check CHECK ((address ~ '^0x[0-9a-f]{40}$'::text)),
  constraint account_wallets_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
alter table account_wallets enable row level security;
alter table account_wallets force row level security;
create policy crossing on account_wallets using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table accounts (
  id uuid not null,
  email text not null,
  email_key text not null,
  email_verified boolean default false not null,
  display_name text default ''::text not null,
  password_hash text,
  password_changed_at timestamp with time zone,
  status text default 'active'::text not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  given_name text,
  family_name text,
  picture text,
  locale text,
  zoneinfo text,
  phone_number text,
  phone_number_verified boolean default false not null,
  guest_since timestamp with time zone,
  typed_email text,
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_email_key_key UNIQUE (email_key),
  constraint accounts_email_key_check CHECK (((email_key = lower(email)) OR starts_with(email_key, (lower(email) || '/'::text)))) NOT VALID,
  constraint accounts_family_name_check CHECK (((char_length(family_name) >= 1) AND (char_length(family_name) <= 120))),
  constraint accounts_given_name_check CHECK (((char_length(given_name) >= 1) AND (char_length(given_name) <= 120))),
  constraint accounts_locale_check CHECK (((char_length(locale) >= 1) AND (char_length(locale) <= 35))),
  constraint accounts_phone CHECK (((phone_number IS NOT NULL) OR (NOT phone_number_verified))),
  constraint accounts_phone_number_check CHECK ((phone_number ~ '^\+[1-9][0-9]{1,14}$'::text)),
  constraint accounts_picture_check CHECK (((char_length(picture) >= 1) AND (char_length(picture) <= 2048))),
  constraint accounts_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
  constraint accounts_zoneinfo_check CHECK (((char_length(zoneinfo) >= 1) AND (char_length(zoneinfo) <= 64)))
);
CREATE INDEX accounts_guests ON public.accounts USING btree (guest_since) WHERE (guest_since IS NOT NULL);
alter table accounts enable row level security;
alter table accounts force row level security;
create policy crossing on accounts using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table activity_hours (
  tenant_id uuid not null,
  kind text not null,
  hour timestamp with time zone not null,
  total bigint not null,
  failed bigint not null,
  constraint activity_hours_pkey PRIMARY KEY (tenant_id, kind, hour),
  constraint activity_hours_kind_check CHECK ((kind = ANY (ARRAY['sign_ins'::text, 'tokens'::text, 'egress'::text, 'deliveries'::text])))
);
CREATE INDEX activity_hours_in_time ON public.activity_hours USING btree (hour);
alter table activity_hours enable row level security;
alter table activity_hours force row level security;
create policy tenant on activity_hours using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agent_anchors (
  tenant_id uuid not null,
  agent_id uuid not null,
  type text not null,
  value text not null,
  fingerprint text,
  status text default 'active'::text not null,
  verified_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  constraint agent_anchors_pkey PRIMARY KEY (tenant_id, type, value),
  constraint agent_anchors_chain_check CHECK (((type = 'erc8004'::text) = (value ~~ 'eip155:%'::text))) NOT VALID,
  constraint agent_anchors_status_check CHECK ((status = ANY (ARRAY['active'::text, 'revoked'::text]))),
  constraint agent_anchors_type_check CHECK ((type = ANY (ARRAY['did_key'::text, 'did_web'::text, 'erc8004'::text, 'client_credentials'::text]))),
  constraint agent_anchors_web_check CHECK (((type = 'did_web'::text) = (value ~~ 'did:web:%'::text))),
  constraint agent_anchors_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_anchors_by_value ON public.agent_anchors USING btree (value);
CREATE INDEX agent_anchors_of_agent ON public.agent_anchors USING btree (tenant_id, agent_id);
alter table agent_anchors enable row level security;
alter table agent_anchors force row level security;
create policy tenant on agent_anchors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agent_challenges (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  fingerprint text not null,
  nonce text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  consumed_at timestamp with time zone,
  constraint agent_challenges_pkey PRIMARY KEY (tenant_id, id),
  constraint agent_challenges_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE CASCADE,
  constraint agent_challenges_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX agent_challenges_by_id ON public.agent_challenges USING btree (id);
CREATE INDEX agent_challenges_expired ON public.agent_challenges USING btree (expires_at);
CREATE INDEX agent_challenges_of_agent ON public.agent_challenges USING btree (agent_id);
alter table agent_challenges enable row level security;
alter table agent_challenges force row level security;
create policy tenant on agent_challenges using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agent_keys (
  tenant_id uuid not null,
  fingerprint text not null,
  agent_id uuid not null,
  algorithm text not null,
  public_key bytea not null,
  status text default 'active'::text not null,
  created_at timestamp with time zone not null,
  deprecated_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint agent_keys_pkey PRIMARY KEY (tenant_id, fingerprint),
  constraint agent_keys_algorithm_check CHECK ((algorithm = ANY (ARRAY['ed25519'::text, 'es256'::text]))),
  constraint agent_keys_check CHECK (((status = 'revoked'::text) = (revoked_at IS NOT NULL))),
  constraint agent_keys_public_key_check CHECK ((length(public_key) = ANY (ARRAY[32, 33]))),
  constraint agent_keys_status_check CHECK ((status = ANY (ARRAY['active'::text, 'deprecated'::text, 'revoked'::text]))),
  constraint agent_keys_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_keys_by_fingerprint ON public.agent_keys USING btree (fingerprint);
CREATE INDEX agent_keys_of_agent ON public.agent_keys USING btree (tenant_id, agent_id);
alter table agent_keys enable row level security;
alter table agent_keys force row level security;
create policy tenant on agent_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agent_signature_keys (
  tenant_id uuid not null,
  agent_id uuid not null,
  point text not null,
  kid text not null,
  private_sealed bytea not null,
  created_at timestamp with time zone not null,
  constraint agent_signature_keys_pkey PRIMARY KEY (tenant_id, agent_id),
  constraint agent_signature_keys_agent_id_key UNIQUE (agent_id),
  constraint agent_signature_keys_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE CASCADE
);
CREATE INDEX agent_signature_keys_newest ON public.agent_signature_keys USING btree (created_at DESC, agent_id);
alter table agent_signature_keys enable row level security;
alter table agent_signature_keys force row level security;
create policy tenant on agent_signature_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agent_suspensions (
  tenant_id uuid not null,
  agent_id uuid not null,
  created_at timestamp with time zone not null,
  constraint agent_suspensions_pkey PRIMARY KEY (tenant_id, agent_id),
  constraint agent_suspensions_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE CASCADE,
  constraint agent_suspensions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX agent_suspensions_of_agent ON public.agent_suspensions USING btree (agent_id);
alter table agent_suspensions enable row level security;
alter table agent_suspensions force row level security;
create policy tenant on agent_suspensions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table agents (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  status text default 'active'::text not null,
  scopes text[] not null,
  metadata jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  last_authenticated_at timestamp with time zone,
  profile jsonb default '{}'::jsonb not null,
  constraint agents_pkey PRIMARY KEY (tenant_id, id),
  constraint agents_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
  constraint agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX agents_by_id ON public.agents USING btree (id);
CREATE INDEX agents_listed ON public.agents USING btree (tenant_id, created_at DESC, id DESC);
alter table agents enable row level security;
alter table agents force row level security;
create policy tenant on agents using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table announcements (
  id bigint generated always as identity not null,
  channel text not null,
  payload text not null,
  at timestamp with time zone default clock_timestamp() not null,
  constraint announcements_pkey PRIMARY KEY (id)
);

create table api_keys (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  scopes text[] not null,
  allowed_addresses text[] default '{}'::text[] not null,
  maker_type text not null,
  maker_id text not null,
  parent_id uuid,
  token_sha256 bytea not null,
  previous_sha256 bytea,
  previous_expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  rotated_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (tenant_id, id),
  constraint api_keys_id_key UNIQUE (id),
  constraint api_keys_previous_sha256_key UNIQUE (previous_sha256),
  constraint api_keys_token_sha256_key UNIQUE (token_sha256),
  constraint api_keys_check CHECK (((previous_sha256 IS NULL) = (previous_expires_at IS NULL))),
  constraint api_keys_maker_type_check CHECK ((maker_type = ANY (ARRAY['human'::text, 'agent'::text, 'service'::text]))),
  constraint api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255))),
  constraint api_keys_previous_sha256_check CHECK ((length(previous_sha256) = 32)),
  constraint api_keys_scopes_check CHECK ((cardinality(scopes) > 0)),
  constraint api_keys_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint api_keys_tenant_id_parent_id_fkey FOREIGN KEY (tenant_id, parent_id) REFERENCES api_keys(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX api_keys_expiring ON public.api_keys USING btree (expires_at);
CREATE INDEX api_keys_listed ON public.api_keys USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX api_keys_of_parent ON public.api_keys USING btree (tenant_id, parent_id) WHERE (parent_id IS NOT NULL);
alter table api_keys enable row level security;
alter table api_keys force row level security;
create policy tenant on api_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table api_resources (
  tenant_id uuid not null,
  id uuid not null,
  resource text not null,
  resource_key text not null,
  name text not null,
  scopes jsonb not null,
  allowed_clients text not null,
  client_ids text[] not null,
  require_dpop boolean not null,
  access_token_lifetime_secs integer,
  token_status_list boolean default false not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint api_resources_pkey PRIMARY KEY (tenant_id, id),
  constraint api_resources_id_key UNIQUE (id),
  constraint api_resources_resource_key_key UNIQUE (resource_key),
  constraint api_resources_access_token_lifetime_secs_check CHECK ((access_token_lifetime_secs > 0)),
  constraint api_resources_allowed_clients_check CHECK ((allowed_clients = ANY (ARRAY['any'::text, 'listed'::text]))),
  constraint api_resources_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX api_resources_listed ON public.api_resources USING btree (tenant_id, created_at DESC, id DESC);
alter table api_resources enable row level security;
alter table api_resources force row level security;
create policy tenant on api_resources using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table application_origins (
  tenant_id uuid not null,
  application_id uuid not null,
  origin text not null,
  constraint application_origins_pkey PRIMARY KEY (tenant_id, application_id, origin),
  constraint application_origins_tenant_id_application_id_fkey FOREIGN KEY (tenant_id, application_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX application_origins_by_origin ON public.application_origins USING btree (origin);
alter table application_origins enable row level security;
alter table application_origins force row level security;
create policy tenant on application_origins using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table application_secrets (
  tenant_id uuid not null,
  application_id uuid not null,
  id uuid not null,
  secret_sha256 bytea not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint application_secrets_pkey PRIMARY KEY (tenant_id, application_id, id),
  constraint application_secrets_secret_sha256_check CHECK ((length(secret_sha256) = 32)),
  constraint application_secrets_tenant_id_application_id_fkey FOREIGN KEY (tenant_id, application_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
alter table application_secrets enable row level security;
alter table application_secrets force row level security;
create policy tenant on application_secrets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table applications (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  status text default 'active'::text not null,
  client_type text not null,
  token_endpoint_auth_method text not null,
  audience text not null,
  redirect_uris text[] default '{}'::text[] not null,
  post_logout_redirect_uris text[] default '{}'::text[] not null,
  allowed_origins text[] default '{}'::text[] not null,
  grant_types text[] not null,
  response_types text[] not null,
  scopes text[] not null,
  jwks jsonb,
  dpop_bound_access_tokens boolean default false not null,
  require_pushed_authorization_requests boolean default false not null,
  id_token_signed_response_alg text default 'ES256'::text not null,
  logo_uri text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  require_pkce boolean default false not null,
  authorization_details_types text[] default '{}'::text[] not null,
  jwks_uri text,
  registration jsonb,
  registration_scopes text[],
  registration_token_sha256 bytea,
  default_scopes text[],
  loopback_any_port boolean default false not null,
  metadata_url text,
  registration_scope_bound text[],
  held_to_method boolean default false not null,
  secret_misplaced_at timestamp with time zone,
  backchannel_logout_uri text,
  backchannel_logout_session_required boolean default false not null,
  frontchannel_logout_uri text,
  frontchannel_logout_session_required boolean default false not null,
  rotate_refresh_tokens boolean default true not null,
  require_signed_request_object boolean default false not null,
  request_object_signing_alg text,
  userinfo_signed_response_alg text,
  authorization_signed_response_alg text,
  introspection_signed_response_alg text,
  constraint applications_pkey PRIMARY KEY (tenant_id, id),
  constraint applications_id_key UNIQUE (id),
  constraint applications_tenant_id_audience_key UNIQUE (tenant_id, audience),
  constraint applications_check CHECK (((client_type = 'public'::text) = (token_endpoint_auth_method = 'none'::text))),
  constraint applications_check1 CHECK (((jwks_uri IS NULL) OR (jwks IS NULL))),
  constraint applications_client_type_check CHECK ((client_type = ANY (ARRAY['public'::text, 'confidential'::text]))),
  constraint applications_id_token_signed_response_alg_check CHECK ((id_token_signed_response_alg = ANY (ARRAY['ES256'::text, 'EdDSA'::text, 'RS256'::text]))) NOT VALID,
  constraint applications_registration_token_sha256_check CHECK ((length(registration_token_sha256) = 32)),
  constraint applications_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  constraint applications_token_endpoint_auth_method_check CHECK ((token_endpoint_auth_method = ANY (ARRAY['none'::text, 'client_secret_basic'::text, 'client_secret_post'::text, 'private_key_jwt'::text, 'spiffe_jwt'::text]))) NOT VALID,
  constraint applications_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX applications_by_metadata_url ON public.applications USING btree (metadata_url, tenant_id) WHERE (metadata_url IS NOT NULL);
CREATE INDEX applications_listed ON public.applications USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX applications_origins ON public.applications USING gin (allowed_origins);
alter table applications enable row level security;
alter table applications force row level security;
create policy tenant on applications using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table audience_claims (
  audience_key text not null,
  holder text not null,
  tenant_id uuid not null,
  application_id uuid,
  resource_id uuid,
  constraint audience_claims_pkey PRIMARY KEY (tenant_id, audience_key, holder),
  constraint audience_claims_audience_key_holder_key UNIQUE (audience_key, holder),
  constraint audience_claims_check CHECK (((holder = 'application'::text) = (application_id IS NOT NULL))),
  constraint audience_claims_check1 CHECK (((holder = 'resource'::text) = (resource_id IS NOT NULL))),
  constraint audience_claims_holder_check CHECK ((holder = ANY (ARRAY['application'::text, 'resource'::text]))),
  constraint audience_claims_tenant_id_application_id_fkey FOREIGN KEY (tenant_id, application_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE,
  constraint audience_claims_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint audience_claims_tenant_id_resource_id_fkey FOREIGN KEY (tenant_id, resource_id) REFERENCES api_resources(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX audience_claims_of_application ON public.audience_claims USING btree (tenant_id, application_id) WHERE (application_id IS NOT NULL);
CREATE INDEX audience_claims_of_resource ON public.audience_claims USING btree (tenant_id, resource_id) WHERE (resource_id IS NOT NULL);
alter table audience_claims enable row level security;
alter table audience_claims force row level security;
create policy everyone on audience_claims for select using (true);
create policy tenant on audience_claims using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table audit_events (
  tenant_id uuid not null,
  sequence bigint not null,
  id uuid not null,
  type text not null,
  occurred_at timestamp with time zone not null,
  subject jsonb,
  actors jsonb not null,
  client_id text,
  delegation_id text,
  grant_id text,
  resource jsonb,
  outcome text not null,
  request_id text,
  ip text,
  data jsonb not null,
  previous_hash bytea not null,
  hash bytea not null,
  event_number bigint,
  event_about jsonb,
  constraint audit_events_pkey PRIMARY KEY (tenant_id, sequence),
  constraint audit_events_hash_check CHECK ((length(hash) = 32)),
  constraint audit_events_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'failure'::text, 'denied'::text]))),
  constraint audit_events_previous_hash_check CHECK ((length(previous_hash) = 32)),
  constraint audit_events_sequence_check CHECK ((sequence > 0))
);
CREATE INDEX audit_events_in_time ON public.audit_events USING btree (tenant_id, occurred_at, sequence);
CREATE INDEX audit_events_of_request ON public.audit_events USING btree (request_id, tenant_id, occurred_at, sequence) WHERE (request_id IS NOT NULL);
CREATE INDEX audit_events_of_resource ON public.audit_events USING btree (tenant_id, ((resource ->> 'id'::text)), occurred_at, sequence) WHERE (resource IS NOT NULL);
CREATE INDEX audit_events_of_type ON public.audit_events USING btree (tenant_id, type, occurred_at, sequence);
CREATE INDEX audit_events_time ON public.audit_events USING brin (occurred_at);
alter table audit_events enable row level security;
alter table audit_events force row level security;
create policy tenant on audit_events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table authorization_codes (
  tenant_id uuid not null,
  id uuid not null,
  code_sha256 bytea not null,
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
  level smallint not null,
  amr text[] not null,
  auth_time timestamp with time zone not null,
  authorization_details jsonb,
  claims jsonb,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  redeemed_at timestamp with time zone,
  resource_ids uuid[],
  document_sha256 text,
  constraint authorization_codes_pkey PRIMARY KEY (tenant_id, id),
  constraint authorization_codes_code_sha256_key UNIQUE (code_sha256),
  constraint authorization_codes_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint authorization_codes_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint authorization_codes_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX authorization_codes_expired ON public.authorization_codes USING btree (expires_at);
alter table authorization_codes enable row level security;
alter table authorization_codes force row level security;
create policy tenant on authorization_codes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table authorization_requests (
  tenant_id uuid not null,
  id uuid not null,
  handle_sha256 bytea not null,
  client_id uuid not null,
  pushed_id uuid,
  request jsonb not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  consumed_at timestamp with time zone,
  answer bytea,
  constraint authorization_requests_pkey PRIMARY KEY (tenant_id, id),
  constraint authorization_requests_handle_sha256_key UNIQUE (handle_sha256),
  constraint authorization_requests_handle_sha256_check CHECK ((length(handle_sha256) = 32)),
  constraint authorization_requests_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX authorization_requests_expired ON public.authorization_requests USING btree (expires_at);
alter table authorization_requests enable row level security;
alter table authorization_requests force row level security;
create policy tenant on authorization_requests using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table backchannel_requests (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  code_sha256 bytea not null,
  user_code text,
  client_id uuid not null,
  status text default 'pending'::text not null,
  scopes text[] not null,
  audience text[] not null,
  level_asked smallint default 1 not null,
  binding_message text,
  asked_from text,
  interval_secs integer not null,
  polled_at timestamp with time zone,
  subject text,
  organization_id uuid,
  level smallint,
  amr text[],
  auth_time timestamp with time zone,
  decided_at timestamp with time zone,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  resource_ids uuid[],
  decided_session_id uuid,
  constraint backchannel_requests_pkey PRIMARY KEY (tenant_id, id),
  constraint backchannel_requests_code_sha256_key UNIQUE (code_sha256),
  constraint backchannel_requests_check CHECK (((status <> ALL (ARRAY['approved'::text, 'redeemed'::text])) OR ((subject IS NOT NULL) AND (level IS NOT NULL) AND (amr IS NOT NULL) AND (auth_time IS NOT NULL)))),
  constraint backchannel_requests_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint backchannel_requests_interval_secs_check CHECK ((interval_secs > 0)),
  constraint backchannel_requests_kind_check CHECK ((kind = ANY (ARRAY['device'::text, 'ciba'::text]))),
  constraint backchannel_requests_level_asked_check CHECK (((level_asked >= 1) AND (level_asked <= 3))),
  constraint backchannel_requests_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint backchannel_requests_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'redeemed'::text]))),
  constraint backchannel_requests_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX backchannel_requests_expired ON public.backchannel_requests USING btree (expires_at);
CREATE INDEX backchannel_requests_inbox ON public.backchannel_requests USING btree (tenant_id, subject) WHERE ((kind = 'ciba'::text) AND (status = 'pending'::text));
CREATE UNIQUE INDEX backchannel_requests_user_code ON public.backchannel_requests USING btree (user_code) WHERE (user_code IS NOT NULL);
alter table backchannel_requests enable row level security;
alter table backchannel_requests force row level security;
create policy tenant on backchannel_requests using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table billing_plans (
  id uuid not null,
  name text not null,
  features text[] not null,
  max_members integer,
  max_tenants integer,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint billing_plans_pkey PRIMARY KEY (id),
  constraint billing_plans_name_key UNIQUE (name),
  constraint billing_plans_max_members_check CHECK ((max_members > 0)),
  constraint billing_plans_max_tenants_check CHECK ((max_tenants > 0)),
  constraint billing_plans_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255)))
);
CREATE INDEX billing_plans_listed ON public.billing_plans USING btree (created_at DESC, id DESC);
alter table billing_plans enable row level security;
alter table billing_plans force row level security;
create policy everyone on billing_plans using (true) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table browser_sessions (
  tenant_id uuid not null,
  id uuid not null,
  account_id uuid not null,
  token_sha256 bytea not null,
  level smallint not null,
  pending boolean not null,
  amr text[] not null,
  auth_time timestamp with time zone not null,
  password_at timestamp with time zone not null,
  idle_secs integer not null,
  user_agent text not null,
  address text not null,
  created_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  ended_reason text,
  confined boolean default false not null,
  provider text,
  replaced_by uuid,
  upstream_subject text,
  upstream_sid text,
  constraint browser_sessions_pkey PRIMARY KEY (tenant_id, id),
  constraint browser_sessions_token_sha256_key UNIQUE (token_sha256),
  constraint browser_sessions_check CHECK (((ended_at IS NULL) = (ended_reason IS NULL))),
  constraint browser_sessions_idle_secs_check CHECK ((idle_secs > 0)),
  constraint browser_sessions_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint browser_sessions_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint browser_sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint browser_sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX browser_sessions_by_account ON public.browser_sessions USING btree (account_id);
CREATE INDEX browser_sessions_expired ON public.browser_sessions USING btree (expires_at);
CREATE INDEX browser_sessions_of_account ON public.browser_sessions USING btree (tenant_id, account_id) WHERE (ended_at IS NULL);
CREATE INDEX browser_sessions_replaced ON public.browser_sessions USING btree (tenant_id, replaced_by) WHERE (replaced_by IS NOT NULL);
CREATE INDEX browser_sessions_upstream ON public.browser_sessions USING btree (provider, upstream_sid) WHERE (upstream_sid IS NOT NULL);
alter table browser_sessions enable row level security;
alter table browser_sessions force row level security;
create policy tenant on browser_sessions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table call_approvals (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  status text default 'pending'::text not null,
  grant_id uuid not null,
  credential_id uuid,
  agent_id uuid not null,
  delegation_id uuid,
  approver text,
  match_sha256 text not null,
  shown jsonb not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  announced_at timestamp with time zone,
  decided_at timestamp with time zone,
  decided_by text,
  used_at timestamp with time zone,
  constraint call_approvals_pkey PRIMARY KEY (tenant_id, id),
  constraint call_approvals_kind_check CHECK ((kind = ANY (ARRAY['egress'::text, 'mcp'::text]))),
  constraint call_approvals_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'used'::text, 'expired'::text]))),
  constraint call_approvals_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX call_approvals_announced ON public.call_approvals USING btree (created_at) WHERE ((announced_at IS NULL) AND (status = 'pending'::text));
CREATE UNIQUE INDEX call_approvals_id ON public.call_approvals USING btree (id);
CREATE INDEX call_approvals_listed ON public.call_approvals USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX call_approvals_of_agent ON public.call_approvals USING btree (tenant_id, agent_id, expires_at);
CREATE INDEX call_approvals_open ON public.call_approvals USING btree (expires_at) WHERE (status = ANY (ARRAY['pending'::text, 'approved'::text]));
CREATE UNIQUE INDEX call_approvals_pending ON public.call_approvals USING btree (tenant_id, grant_id, match_sha256) WHERE (status = 'pending'::text);
alter table call_approvals enable row level security;
alter table call_approvals force row level security;
create policy tenant on call_approvals using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table card_events (
  id text not null,
  type text not null,
  about text not null,
  object_id text not null,
  payment_id text,
  received_at timestamp with time zone not null,
  due_at timestamp with time zone,
  constraint card_events_pkey PRIMARY KEY (id),
  constraint card_events_about_check CHECK ((about = ANY (ARRAY['payment'::text, 'dispute'::text, 'refund'::text])))
);
CREATE INDEX card_events_due ON public.card_events USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX card_events_received ON public.card_events USING btree (received_at);

create table card_payments (
  tenant_id uuid not null,
  charge_id uuid not null,
  failed_calls integer default 0 not null,
  checkout_id text,
  payment_id text,
  abandoned boolean default false not null,
  looked_up_at timestamp with time zone,
  look_ups integer default 0 not null,
  created_at timestamp with time zone not null,
  constraint card_payments_pkey PRIMARY KEY (tenant_id, charge_id),
  constraint card_payments_checkout_id_key UNIQUE (checkout_id),
  constraint card_payments_payment_id_key UNIQUE (payment_id),
  constraint card_payments_check CHECK (((NOT abandoned) OR ((checkout_id IS NULL) AND (payment_id IS NULL)))),
  constraint card_payments_tenant_id_charge_id_fkey FOREIGN KEY (tenant_id, charge_id) REFERENCES charges(tenant_id, id) ON DELETE CASCADE
);
alter table card_payments enable row level security;
alter table card_payments force row level security;
create policy tenant on card_payments using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table chain_anchors (
  tenant_id uuid not null,
  agent_id uuid not null,
  registry text not null,
  token text not null,
  from_block bigint not null,
  constraint chain_anchors_pkey PRIMARY KEY (tenant_id, registry, token),
  constraint chain_anchors_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX chain_anchors_of_agent ON public.chain_anchors USING btree (tenant_id, agent_id);
CREATE INDEX chain_anchors_of_registry ON public.chain_anchors USING btree (registry, token);
alter table chain_anchors enable row level security;
alter table chain_anchors force row level security;
create policy tenant on chain_anchors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table chain_cursors (
  network text not null,
  block bigint not null,
  updated_at timestamp with time zone not null,
  constraint chain_cursors_pkey PRIMARY KEY (network)
);

create table chain_logs (
  tenant_id uuid not null,
  agent_id uuid not null,
  log bytea not null,
  block bigint not null,
  constraint chain_logs_pkey PRIMARY KEY (tenant_id, agent_id, log),
  constraint chain_logs_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES agents(tenant_id, id) ON DELETE CASCADE
);
alter table chain_logs enable row level security;
alter table chain_logs force row level security;
create policy tenant on chain_logs using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table charges (
  tenant_id uuid not null,
  id uuid not null,
  status text default 'pending'::text not null,
  rail text,
  rail_reference text,
  amount_minor bigint not null,
  currency text not null,
  refunded_amount_minor bigint default 0 not null,
  refunding_amount_minor bigint default 0 not null,
  reversed_amount_minor bigint default 0 not null,
  failure_code text,
  metadata jsonb not null,
  product_id uuid,
  price_id uuid,
  quantity integer default 1 not null,
  buyer_id text,
  customer_email text,
  buyer_country text,
  buyer_region text,
  checkout_session_id uuid,
  payment_link_id uuid,
  subscription_id uuid,
  subscription_period integer,
  paid_at timestamp with time zone,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  buyer_metadata jsonb,
  constraint charges_pkey PRIMARY KEY (tenant_id, id),
  constraint charges_amount_minor_check CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint charges_check CHECK ((((refunded_amount_minor + refunding_amount_minor) + reversed_amount_minor) <= amount_minor)),
  constraint charges_check1 CHECK (((status = ANY (ARRAY['succeeded'::text, 'refunded'::text])) OR (((refunded_amount_minor + refunding_amount_minor) + reversed_amount_minor) = 0))),
  constraint charges_check2 CHECK (((status = 'refunded'::text) = (refunded_amount_minor > 0))),
  constraint charges_check3 CHECK (((status = ANY (ARRAY['succeeded'::text, 'refunded'::text])) = (paid_at IS NOT NULL))),
  constraint charges_check4 CHECK (((status <> 'failed'::text) OR (failure_code IS NOT NULL))),
  constraint charges_check5 CHECK (((status = 'pending'::text) OR (due_at IS NULL))),
  constraint charges_check6 CHECK (((status = ANY (ARRAY['pending'::text, 'failed'::text])) OR (rail IS NOT NULL))),
  constraint charges_check7 CHECK (((subscription_id IS NULL) = (subscription_period IS NULL))),
  constraint charges_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint charges_quantity_check CHECK (((quantity >= 1) AND (quantity <= 999))),
  constraint charges_refunded_amount_minor_check CHECK ((refunded_amount_minor >= 0)),
  constraint charges_refunding_amount_minor_check CHECK ((refunding_amount_minor >= 0)),
  constraint charges_reversed_amount_minor_check CHECK ((reversed_amount_minor >= 0)),
  constraint charges_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'succeeded'::text, 'failed'::text, 'refunded'::text]))),
  constraint charges_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint charges_tenant_id_subscription_id_fkey FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions(tenant_id, id)
);
CREATE UNIQUE INDEX charges_by_reference ON public.charges USING btree (tenant_id, rail, rail_reference) WHERE (rail_reference IS NOT NULL);
CREATE INDEX charges_due ON public.charges USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX charges_listed ON public.charges USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX charges_of_period ON public.charges USING btree (tenant_id, subscription_id, subscription_period) WHERE ((subscription_id IS NOT NULL) AND (status <> 'failed'::text));
alter table charges enable row level security;
alter table charges force row level security;
create policy tenant on charges using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table checkout_sessions (
  tenant_id uuid not null,
  id uuid not null,
  token_sha256 bytea not null,
  charge_id uuid not null,
  status text default 'open'::text not null,
  success_url text,
  cancel_url text,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint checkout_sessions_pkey PRIMARY KEY (tenant_id, id),
  constraint checkout_sessions_token_sha256_key UNIQUE (token_sha256),
  constraint checkout_sessions_status_check CHECK ((status = ANY (ARRAY['open'::text, 'paying'::text, 'completed'::text, 'expired'::text, 'canceled'::text]))),
  constraint checkout_sessions_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint checkout_sessions_tenant_id_charge_id_fkey FOREIGN KEY (tenant_id, charge_id) REFERENCES charges(tenant_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX checkout_sessions_charge ON public.checkout_sessions USING btree (tenant_id, charge_id);
CREATE INDEX checkout_sessions_expired ON public.checkout_sessions USING btree (expires_at) WHERE (status = 'expired'::text);
CREATE INDEX checkout_sessions_expiry ON public.checkout_sessions USING btree (expires_at) WHERE (status = 'open'::text);
CREATE UNIQUE INDEX checkout_sessions_named ON public.checkout_sessions USING btree (id);
alter table checkout_sessions enable row level security;
alter table checkout_sessions force row level security;
create policy tenant on checkout_sessions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table checkout_transfers (
  tenant_id uuid not null,
  id uuid not null,
  checkout_session_id uuid not null,
  charge_id uuid not null,
  network text not null,
  asset text not null,
  pay_to text not null,
  amount numeric(78,0) not null,
  state text default 'awaited'::text not null,
  payer text,
  transaction text,
  log_index integer,
  watched_until timestamp with time zone not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint checkout_transfers_pkey PRIMARY KEY (tenant_id, id),
  constraint checkout_transfers_check CHECK (((state = ANY (ARRAY['arrived'::text, 'booked'::text, 'surplus'::text])) = (transaction IS NOT NULL))),
  constraint checkout_transfers_check1 CHECK (((transaction IS NULL) = (log_index IS NULL))),
  constraint checkout_transfers_check2 CHECK (((transaction IS NULL) = (payer IS NULL))),
  constraint checkout_transfers_state_check CHECK ((state = ANY (ARRAY['awaited'::text, 'arrived'::text, 'booked'::text, 'surplus'::text, 'void'::text]))),
  constraint checkout_transfers_tenant_id_checkout_session_id_fkey FOREIGN KEY (tenant_id, checkout_session_id) REFERENCES checkout_sessions(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX checkout_transfers_arrived ON public.checkout_transfers USING btree (updated_at) WHERE (state = 'arrived'::text);
CREATE UNIQUE INDEX checkout_transfers_awaited ON public.checkout_transfers USING btree (network, asset, pay_to, amount) WHERE (state = 'awaited'::text);
CREATE INDEX checkout_transfers_of_session ON public.checkout_transfers USING btree (tenant_id, checkout_session_id);
CREATE UNIQUE INDEX checkout_transfers_once ON public.checkout_transfers USING btree (network, transaction, log_index) WHERE (transaction IS NOT NULL);
CREATE INDEX checkout_transfers_watched ON public.checkout_transfers USING btree (watched_until) WHERE (state = 'awaited'::text);
alter table checkout_transfers enable row level security;
alter table checkout_transfers force row level security;
create policy tenant on checkout_transfers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table code_tickets (
  tenant_id uuid not null,
  id uuid not null,
  purpose text not null,
  account_id uuid,
  target text not null,
  code_sha256 bytea not null,
  place_sha256 bytea not null,
  attempts_left integer not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint code_tickets_pkey PRIMARY KEY (tenant_id, id),
  constraint code_tickets_attempts_left_check CHECK ((attempts_left >= 0)),
  constraint code_tickets_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint code_tickets_place_sha256_check CHECK ((length(place_sha256) = 32)),
  constraint code_tickets_purpose_check CHECK ((purpose = ANY (ARRAY['phone_sign_in'::text, 'phone_proof'::text, 'address_proof'::text, 'risk'::text]))),
  constraint code_tickets_target_check CHECK (((char_length(target) >= 1) AND (char_length(target) <= 320))),
  constraint code_tickets_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint code_tickets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX code_tickets_expiry ON public.code_tickets USING btree (expires_at);
CREATE INDEX code_tickets_of_account ON public.code_tickets USING btree (account_id) WHERE (account_id IS NOT NULL);
CREATE INDEX code_tickets_of_place ON public.code_tickets USING btree (place_sha256);
alter table code_tickets enable row level security;
alter table code_tickets force row level security;
create policy tenant on code_tickets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table consents (
  tenant_id uuid not null,
  subject text not null,
  client_id uuid not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  asks_again boolean default false not null,
  constraint consents_pkey PRIMARY KEY (tenant_id, subject, client_id),
  constraint consents_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE,
  constraint consents_tenant_id_subject_fkey FOREIGN KEY (tenant_id, subject) REFERENCES tenant_users(tenant_id, sub) ON DELETE CASCADE
);
alter table consents enable row level security;
alter table consents force row level security;
create policy tenant on consents using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table console_sessions (
  tenant_id uuid not null,
  id uuid not null,
  token_sha256 bytea not null,
  subject text not null,
  tokens_sealed bytea not null,
  scopes text[] not null,
  access_until timestamp with time zone not null,
  pending_sealed bytea,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint console_sessions_pkey PRIMARY KEY (tenant_id, id),
  constraint console_sessions_token_sha256_key UNIQUE (token_sha256),
  constraint console_sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX console_sessions_ended ON public.console_sessions USING btree (expires_at);
alter table console_sessions enable row level security;
alter table console_sessions force row level security;
create policy tenant on console_sessions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create unlogged table coordination_counters (
  key text not null,
  used bigint not null,
  allowed boolean not null,
  ends_at timestamp with time zone not null,
  constraint coordination_counters_pkey PRIMARY KEY (key)
);
CREATE INDEX coordination_counters_end ON public.coordination_counters USING btree (ends_at);

create table coordination_values (
  key text not null,
  value bytea not null,
  expires_at timestamp with time zone not null,
  constraint coordination_values_pkey PRIMARY KEY (key)
);
CREATE INDEX coordination_values_expiry ON public.coordination_values USING btree (expires_at);

create table credential_offers (
  tenant_id uuid not null,
  id uuid not null,
  issuer text not null,
  configuration_id text not null,
  user_id uuid not null,
  subject text not null,
  delegation_id uuid,
  grant_type text not null,
  handle_sha256 bytea not null,
  code_sha256 bytea not null,
  tx_code_sha256 bytea,
  tx_failures smallint default 0 not null,
  status text default 'offered'::text not null,
  token_id uuid,
  grant_id uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint credential_offers_pkey PRIMARY KEY (tenant_id, id),
  constraint credential_offers_code_sha256_key UNIQUE (code_sha256),
  constraint credential_offers_handle_sha256_key UNIQUE (handle_sha256),
  constraint credential_offers_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint credential_offers_grant_type_check CHECK ((grant_type = ANY (ARRAY['authorization_code'::text, 'pre-authorized_code'::text]))),
  constraint credential_offers_handle_sha256_check CHECK ((length(handle_sha256) = 32)),
  constraint credential_offers_status_check CHECK ((status = ANY (ARRAY['offered'::text, 'redeemed'::text, 'issued'::text, 'burned'::text]))),
  constraint credential_offers_tx_code_sha256_check CHECK ((length(tx_code_sha256) = 32)),
  constraint credential_offers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint credential_offers_tenant_id_subject_fkey FOREIGN KEY (tenant_id, subject) REFERENCES tenant_users(tenant_id, sub) ON DELETE CASCADE
);
CREATE INDEX credential_offers_expired ON public.credential_offers USING btree (expires_at);
CREATE INDEX credential_offers_listed ON public.credential_offers USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX credential_offers_of_grant ON public.credential_offers USING btree (tenant_id, grant_id) WHERE (grant_id IS NOT NULL);
CREATE INDEX credential_offers_of_token ON public.credential_offers USING btree (tenant_id, token_id) WHERE (token_id IS NOT NULL);
alter table credential_offers enable row level security;
alter table credential_offers force row level security;
create policy tenant on credential_offers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table data_key_rotations (
  tenant_id uuid not null,
  version integer not null,
  started_at timestamp with time zone not null,
  resealed bigint default 0 not null,
  unopened bigint default 0 not null,
  worker uuid,
  working_until timestamp with time zone,
  finished_at timestamp with time zone,
  constraint data_key_rotations_pkey PRIMARY KEY (tenant_id, version),
  constraint data_key_rotations_check CHECK (((worker IS NULL) = (working_until IS NULL))),
  constraint data_key_rotations_tenant_id_version_fkey FOREIGN KEY (tenant_id, version) REFERENCES data_keys(tenant_id, version) ON DELETE CASCADE
);
CREATE INDEX data_key_rotations_open ON public.data_key_rotations USING btree (started_at) WHERE (finished_at IS NULL);
alter table data_key_rotations enable row level security;
alter table data_key_rotations force row level security;
create policy tenant on data_key_rotations using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table data_keys (
  tenant_id uuid not null,
  version integer not null,
  wrapped bytea not null,
  master_key_id text not null,
  created_at timestamp with time zone not null,
  constraint data_keys_pkey PRIMARY KEY (tenant_id, version),
  constraint data_keys_version_check CHECK ((version > 0))
);
CREATE INDEX data_keys_of_master ON public.data_keys USING btree (master_key_id);
alter table data_keys enable row level security;
alter table data_keys force row level security;
create policy tenant on data_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table delegation_approvals (
  tenant_id uuid not null,
  delegation_id uuid not null,
  statement text not null,
  credential_id bytea not null,
  public_key bytea not null,
  authenticator_data bytea not null,
  client_data_json bytea not null,
  signature bytea not null,
  approved_at timestamp with time zone not null,
  constraint delegation_approvals_pkey PRIMARY KEY (tenant_id, delegation_id),
  constraint delegation_approvals_tenant_id_delegation_id_fkey FOREIGN KEY (tenant_id, delegation_id) REFERENCES delegations(tenant_id, id) ON DELETE CASCADE
);
alter table delegation_approvals enable row level security;
alter table delegation_approvals force row level security;
create policy tenant on delegation_approvals using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table delegation_requests (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  key_fingerprint text,
  device_code_sha256 bytea not null,
  user_code text not null,
  scopes text[] not null,
  audience text not null,
  address text not null,
  status text default 'pending'::text not null,
  interval_secs integer not null,
  polled_at timestamp with time zone,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  decided_at timestamp with time zone,
  decided_by text,
  purpose text,
  constraint delegation_requests_pkey PRIMARY KEY (tenant_id, id),
  constraint delegation_requests_device_code_sha256_key UNIQUE (device_code_sha256),
  constraint delegation_requests_user_code_key UNIQUE (user_code),
  constraint delegation_requests_check CHECK (((status = 'pending'::text) = (decided_at IS NULL))),
  constraint delegation_requests_check1 CHECK (((decided_at IS NULL) = (decided_by IS NULL))),
  constraint delegation_requests_device_code_sha256_check CHECK ((length(device_code_sha256) = 32)),
  constraint delegation_requests_interval_secs_check CHECK ((interval_secs > 0)),
  constraint delegation_requests_scopes_check CHECK ((cardinality(scopes) > 0)),
  constraint delegation_requests_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'consumed'::text]))),
  constraint delegation_requests_user_code_check CHECK ((user_code ~ '^[BCDFGHJKLMNPQRSTVWXZ]{8}$'::text)),
  constraint delegation_requests_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX delegation_requests_expired ON public.delegation_requests USING btree (expires_at);
alter table delegation_requests enable row level security;
alter table delegation_requests force row level security;
create policy tenant on delegation_requests using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table delegations (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  agent_name text not null,
  subject text not null,
  organization_id uuid,
  scopes text[] not null,
  audience text not null,
  level smallint not null,
  amr text[] not null,
  auth_time timestamp with time zone not null,
  key_fingerprint text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  revoked_reason text,
  purpose text,
  constraint delegations_pkey PRIMARY KEY (tenant_id, id),
  constraint delegations_check CHECK (((revoked_at IS NULL) = (revoked_reason IS NULL))),
  constraint delegations_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint delegations_scopes_check CHECK ((cardinality(scopes) > 0)),
  constraint delegations_tenant_id_subject_fkey FOREIGN KEY (tenant_id, subject) REFERENCES tenant_users(tenant_id, sub) ON DELETE CASCADE
);
CREATE INDEX delegations_expired ON public.delegations USING btree (expires_at);
CREATE INDEX delegations_listed ON public.delegations USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX delegations_of_agent ON public.delegations USING btree (agent_id) WHERE (revoked_at IS NULL);
CREATE INDEX delegations_of_person ON public.delegations USING btree (tenant_id, subject, created_at DESC, id DESC);
alter table delegations enable row level security;
alter table delegations force row level security;
create policy tenant on delegations using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table deployment_operators (
  account_id uuid not null,
  scopes text[] not null,
  appointed_at timestamp with time zone not null,
  constraint deployment_operators_pkey PRIMARY KEY (account_id),
  constraint deployment_operators_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
alter table deployment_operators enable row level security;
alter table deployment_operators force row level security;
create policy crossing on deployment_operators using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table disputes (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  amount_minor bigint not null,
  currency text not null,
  reason text not null,
  status text default 'opened'::text not null,
  outcome text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint disputes_pkey PRIMARY KEY (tenant_id, id),
  constraint disputes_tenant_id_charge_id_key UNIQUE (tenant_id, charge_id),
  constraint disputes_amount_minor_check CHECK ((amount_minor >= 0)),
  constraint disputes_check CHECK (((status = 'closed'::text) = (outcome IS NOT NULL))),
  constraint disputes_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint disputes_outcome_check CHECK ((outcome = ANY (ARRAY['won'::text, 'lost'::text]))),
  constraint disputes_status_check CHECK ((status = ANY (ARRAY['opened'::text, 'closed'::text]))),
  constraint disputes_tenant_id_charge_id_fkey FOREIGN KEY (tenant_id, charge_id) REFERENCES charges(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX disputes_listed ON public.disputes USING btree (tenant_id, created_at DESC, id DESC);
alter table disputes enable row level security;
alter table disputes force row level security;
create policy tenant on disputes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table domain_owners (
  domain text not null,
  organization_id uuid not null,
  verified_at timestamp with time zone not null,
  constraint domain_owners_pkey PRIMARY KEY (domain),
  constraint domain_owners_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX domain_owners_of_organization ON public.domain_owners USING btree (organization_id);
alter table domain_owners enable row level security;
alter table domain_owners force row level security;
create policy crossing on domain_owners using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table egress_blocks (
  tenant_id uuid not null,
  id uuid not null,
  credential_id uuid not null,
  authority_id uuid not null,
  agent_id text,
  delegation_id text,
  calls_max integer not null,
  opened_at timestamp with time zone default statement_timestamp() not null,
  renewed_at timestamp with time zone default statement_timestamp() not null,
  requests_held bigint,
  bytes_held bigint,
  constraint egress_blocks_pkey PRIMARY KEY (tenant_id, id),
  constraint egress_blocks_bytes_held_check CHECK ((bytes_held >= 0)),
  constraint egress_blocks_calls_max_check CHECK ((calls_max > 0)),
  constraint egress_blocks_requests_held_check CHECK ((requests_held >= 0)),
  constraint egress_blocks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX egress_blocks_renewed ON public.egress_blocks USING btree (renewed_at);
alter table egress_blocks enable row level security;
alter table egress_blocks force row level security;
create policy tenant on egress_blocks using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table egress_call_limits (
  hop_timeout_secs integer not null,
  said_at timestamp with time zone not null,
  constraint egress_call_limits_pkey PRIMARY KEY (hop_timeout_secs),
  constraint egress_call_limits_hop_timeout_secs_check CHECK ((hop_timeout_secs > 0))
);

create table egress_settlement (
  only_one boolean default true not null,
  settled_until timestamp with time zone not null,
  constraint egress_settlement_pkey PRIMARY KEY (only_one),
  constraint egress_settlement_only_one_check CHECK (only_one)
);

create table event_sequences (
  tenant_id uuid not null,
  last bigint not null,
  audit_last bigint default 0 not null,
  audit_hash bytea default decode(repeat('00'::text, 32), 'hex'::text) not null,
  log_from bigint,
  constraint event_sequences_pkey PRIMARY KEY (tenant_id)
);
alter table event_sequences enable row level security;
alter table event_sequences force row level security;
create policy tenant on event_sequences using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table event_sink_cursors (
  tenant_id uuid not null,
  sink text not null,
  sequence bigint not null,
  due bigint not null,
  due_since timestamp with time zone,
  lease uuid,
  leased_until timestamp with time zone,
  constraint event_sink_cursors_pkey PRIMARY KEY (tenant_id, sink),
  constraint event_sink_cursors_sink_fkey FOREIGN KEY (sink) REFERENCES event_sinks(name) ON DELETE CASCADE
);
CREATE INDEX event_sink_cursors_due ON public.event_sink_cursors USING btree (sink, due_since) WHERE (due > sequence);
CREATE INDEX event_sink_cursors_of_sink ON public.event_sink_cursors USING btree (sink);
alter table event_sink_cursors enable row level security;
alter table event_sink_cursors force row level security;
create policy tenant on event_sink_cursors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table event_sinks (
  name text not null,
  created_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  constraint event_sinks_pkey PRIMARY KEY (name)
);

create table events (
  tenant_id uuid not null,
  sequence bigint not null,
  id uuid not null,
  type text not null,
  data jsonb not null,
  occurred_at timestamp with time zone not null,
  leased_until timestamp with time zone,
  lease uuid,
  leases integer default 0 not null,
  dispatched_at timestamp with time zone,
  constraint events_pkey PRIMARY KEY (tenant_id, sequence),
  constraint events_tenant_id_id_key UNIQUE (tenant_id, id),
  constraint events_sequence_check CHECK ((sequence > 0))
);
CREATE INDEX events_calls_begun ON public.events USING btree (dispatched_at) WHERE ((type = 'vault.credential.accessed'::text) AND (dispatched_at IS NOT NULL));
CREATE INDEX events_done ON public.events USING btree (dispatched_at) WHERE (dispatched_at IS NOT NULL);
CREATE INDEX events_leased ON public.events USING btree (lease) WHERE (dispatched_at IS NULL);
CREATE INDEX events_waiting ON public.events USING btree (occurred_at, id) WHERE (dispatched_at IS NULL);
alter table events enable row level security;
alter table events force row level security;
create policy tenant on events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table form_answers (
  tenant_id uuid not null,
  form_sha256 bytea not null,
  answer bytea not null,
  expires_at timestamp with time zone not null,
  constraint form_answers_pkey PRIMARY KEY (tenant_id, form_sha256),
  constraint form_answers_form_sha256_key UNIQUE (form_sha256),
  constraint form_answers_form_sha256_check CHECK ((length(form_sha256) = 32)),
  constraint form_answers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX form_answers_expiry ON public.form_answers USING btree (expires_at);
alter table form_answers enable row level security;
alter table form_answers force row level security;
create policy tenant on form_answers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table idempotency_keys (
  tenant_id uuid not null,
  key_sha256 bytea not null,
  fingerprint bytea not null,
  answer bytea,
  expires_at timestamp with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (tenant_id, key_sha256),
  constraint idempotency_keys_key_sha256_check CHECK ((length(key_sha256) = 32))
);
CREATE INDEX idempotency_keys_expiry ON public.idempotency_keys USING btree (expires_at);
alter table idempotency_keys enable row level security;
alter table idempotency_keys force row level security;
create policy tenant on idempotency_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table identity_assertion_links (
  tenant_id uuid not null,
  trusted_issuer_id uuid not null,
  subject text not null,
  tenant_user_id uuid not null,
  created_at timestamp with time zone not null,
  constraint identity_assertion_links_pkey PRIMARY KEY (tenant_id, trusted_issuer_id, subject),
  constraint identity_assertion_links_tenant_id_tenant_user_id_fkey FOREIGN KEY (tenant_id, tenant_user_id) REFERENCES tenant_users(tenant_id, id) ON DELETE CASCADE,
  constraint identity_assertion_links_tenant_id_trusted_issuer_id_fkey FOREIGN KEY (tenant_id, trusted_issuer_id) REFERENCES trusted_issuers(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX identity_assertion_links_of_user ON public.identity_assertion_links USING btree (tenant_id, tenant_user_id);
alter table identity_assertion_links enable row level security;
alter table identity_assertion_links force row level security;
create policy tenant on identity_assertion_links using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table identity_assertion_policies (
  tenant_id uuid not null,
  id uuid not null,
  client_id uuid not null,
  audience text not null,
  target_client_id text not null,
  resources text[] not null,
  scopes text[] not null,
  acr text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint identity_assertion_policies_pkey PRIMARY KEY (tenant_id, id),
  constraint identity_assertion_policies_id_key UNIQUE (id),
  constraint identity_assertion_policies_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX identity_assertion_policies_listed ON public.identity_assertion_policies USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX identity_assertion_policies_one ON public.identity_assertion_policies USING btree (tenant_id, client_id, audience);
alter table identity_assertion_policies enable row level security;
alter table identity_assertion_policies force row level security;
create policy tenant on identity_assertion_policies using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table issued_credentials (
  tenant_id uuid not null,
  id uuid not null,
  offer_id uuid,
  user_id uuid not null,
  subject text not null,
  delegation_id uuid,
  configuration_id text not null,
  roles text[] default '{}'::text[] not null,
  list_id uuid not null,
  idx integer not null,
  notification_id uuid not null,
  notified_event text,
  issued_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  revoked_reason text,
  kid text,
  constraint issued_credentials_pkey PRIMARY KEY (tenant_id, id),
  constraint issued_credentials_check CHECK (((revoked_at IS NULL) = (revoked_reason IS NULL))),
  constraint issued_credentials_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX issued_credentials_expired ON public.issued_credentials USING btree (expires_at);
CREATE INDEX issued_credentials_listed ON public.issued_credentials USING btree (tenant_id, issued_at DESC, id DESC);
CREATE INDEX issued_credentials_of_delegation ON public.issued_credentials USING btree (tenant_id, delegation_id) WHERE ((revoked_at IS NULL) AND (delegation_id IS NOT NULL));
CREATE INDEX issued_credentials_of_person ON public.issued_credentials USING btree (tenant_id, subject) WHERE (revoked_at IS NULL);
CREATE INDEX issued_credentials_of_response ON public.issued_credentials USING btree (tenant_id, notification_id);
CREATE INDEX issued_credentials_of_service_key ON public.issued_credentials USING btree (tenant_id, issued_at) WHERE (kid IS NULL);
alter table issued_credentials enable row level security;
alter table issued_credentials force row level security;
create policy tenant on issued_credentials using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table known_browsers (
  account_id uuid not null,
  browser_sha256 bytea not null,
  network text not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  passkey_asked_at timestamp with time zone,
  constraint known_browsers_pkey PRIMARY KEY (account_id, browser_sha256, network),
  constraint known_browsers_browser_sha256_check CHECK ((length(browser_sha256) = 32)),
  constraint known_browsers_network_check CHECK (((char_length(network) >= 1) AND (char_length(network) <= 64))),
  constraint known_browsers_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
CREATE INDEX known_browsers_seen ON public.known_browsers USING btree (last_seen_at);
alter table known_browsers enable row level security;
alter table known_browsers force row level security;
create policy crossing on known_browsers using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table ledger_accounts (
  tenant_id uuid not null,
  currency text not null,
  rail text not null,
  account text not null,
  balance_minor bigint not null,
  constraint ledger_accounts_pkey PRIMARY KEY (tenant_id, currency, rail, account),
  constraint ledger_accounts_balance_minor_check CHECK (((balance_minor >= '-9007199254740991'::bigint) AND (balance_minor <= '9007199254740991'::bigint)))
);
alter table ledger_accounts enable row level security;
alter table ledger_accounts force row level security;
create policy tenant on ledger_accounts using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table ledger_books (
  tenant_id uuid not null,
  currency text not null,
  last_sequence bigint not null,
  constraint ledger_books_pkey PRIMARY KEY (tenant_id, currency),
  constraint ledger_books_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
alter table ledger_books enable row level security;
alter table ledger_books force row level security;
create policy tenant on ledger_books using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table ledger_entries (
  tenant_id uuid not null,
  currency text not null,
  sequence bigint not null,
  id uuid not null,
  kind text not null,
  subject_id uuid not null,
  created_at timestamp with time zone not null,
  constraint ledger_entries_pkey PRIMARY KEY (tenant_id, currency, sequence),
  constraint ledger_entries_tenant_id_id_key UNIQUE (tenant_id, id)
);
CREATE UNIQUE INDEX ledger_entries_once ON public.ledger_entries USING btree (tenant_id, kind, subject_id) WHERE (kind !~~ 'settlement.%'::text);
alter table ledger_entries enable row level security;
alter table ledger_entries force row level security;
create policy tenant on ledger_entries using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table ledger_lines (
  tenant_id uuid not null,
  entry_id uuid not null,
  number integer not null,
  currency text not null,
  rail text not null,
  account text not null,
  amount_minor bigint not null,
  constraint ledger_lines_pkey PRIMARY KEY (tenant_id, entry_id, number),
  constraint ledger_lines_account_check CHECK ((account = ANY (ARRAY['clearing'::text, 'pending'::text, 'held'::text, 'available'::text, 'in_transit'::text]))),
  constraint ledger_lines_amount_minor_check CHECK ((amount_minor <> 0)),
  constraint ledger_lines_tenant_id_entry_id_fkey FOREIGN KEY (tenant_id, entry_id) REFERENCES ledger_entries(tenant_id, id)
);
alter table ledger_lines enable row level security;
alter table ledger_lines force row level security;
create policy tenant on ledger_lines using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table locks (
  key text not null,
  constraint locks_pkey PRIMARY KEY (key)
);

create table mail_address_shares (
  address_sha256 bytea not null,
  day date not null,
  letters integer not null,
  last_at timestamp with time zone not null,
  constraint mail_address_shares_pkey PRIMARY KEY (address_sha256),
  constraint mail_address_shares_address_sha256_check CHECK ((length(address_sha256) = 32)),
  constraint mail_address_shares_letters_check CHECK ((letters > 0))
);
CREATE INDEX mail_address_shares_age ON public.mail_address_shares USING btree (day);
alter table mail_address_shares enable row level security;
alter table mail_address_shares force row level security;
create policy crossing on mail_address_shares using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table mail_tenant_shares (
  tenant_id uuid not null,
  day date not null,
  letters integer not null,
  constraint mail_tenant_shares_pkey PRIMARY KEY (tenant_id, day),
  constraint mail_tenant_shares_letters_check CHECK ((letters > 0)),
  constraint mail_tenant_shares_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX mail_tenant_shares_age ON public.mail_tenant_shares USING btree (day);
alter table mail_tenant_shares enable row level security;
alter table mail_tenant_shares force row level security;
create policy tenant on mail_tenant_shares using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table mail_tickets (
  tenant_id uuid not null,
  id uuid not null,
  purpose text not null,
  account_id uuid,
  email_key text not null,
  link_sha256 bytea,
  code_sha256 bytea,
  flow_sha256 bytea,
  browser_sha256 bytea,
  attempts_left integer not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  recovery boolean default false not null,
  constraint mail_tickets_pkey PRIMARY KEY (tenant_id, id),
  constraint mail_tickets_link_sha256_key UNIQUE (link_sha256),
  constraint mail_tickets_attempts_left_check CHECK ((attempts_left >= 0)),
  constraint mail_tickets_browser_sha256_check CHECK ((length(browser_sha256) = 32)),
  constraint mail_tickets_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint mail_tickets_email_key_check CHECK ((email_key = lower(email_key))),
  constraint mail_tickets_flow_sha256_check CHECK ((length(flow_sha256) = 32)),
  constraint mail_tickets_link_sha256_check CHECK ((length(link_sha256) = 32)),
  constraint mail_tickets_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'password_reset'::text, 'invitation'::text, 'email_verification'::text, 'sign_up'::text]))),
  constraint mail_tickets_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint mail_tickets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX mail_tickets_expiry ON public.mail_tickets USING btree (expires_at);
CREATE INDEX mail_tickets_of_account ON public.mail_tickets USING btree (account_id) WHERE (used_at IS NULL);
CREATE INDEX mail_tickets_of_flow ON public.mail_tickets USING btree (flow_sha256) WHERE (flow_sha256 IS NOT NULL);
alter table mail_tickets enable row level security;
alter table mail_tickets force row level security;
create policy tenant on mail_tickets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table mcp_servers (
  tenant_id uuid not null,
  id uuid not null,
  slug text not null,
  name text not null,
  url text not null,
  credential_id uuid,
  connector text,
  allow_private boolean not null,
  tools jsonb default '[]'::jsonb not null,
  tools_seen_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint mcp_servers_pkey PRIMARY KEY (tenant_id, id),
  constraint mcp_servers_id_key UNIQUE (id),
  constraint mcp_servers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX mcp_servers_listed ON public.mcp_servers USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX mcp_servers_slug ON public.mcp_servers USING btree (tenant_id, slug);
alter table mcp_servers enable row level security;
alter table mcp_servers force row level security;
create policy tenant on mcp_servers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table observed_client_documents (
  tenant_id uuid not null,
  id uuid not null,
  document_sha256 text not null,
  document jsonb not null,
  first_seen_at timestamp with time zone not null,
  constraint observed_client_documents_pkey PRIMARY KEY (tenant_id, id, document_sha256),
  constraint observed_client_documents_tenant_id_id_fkey FOREIGN KEY (tenant_id, id) REFERENCES observed_clients(tenant_id, id) ON DELETE CASCADE
);
alter table observed_client_documents enable row level security;
alter table observed_client_documents force row level security;
create policy tenant on observed_client_documents using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table observed_clients (
  tenant_id uuid not null,
  id uuid not null,
  client_id text not null,
  client_name text,
  document_sha256 text not null,
  decision_sha256 text not null,
  first_seen_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  grants_until timestamp with time zone not null,
  constraint observed_clients_pkey PRIMARY KEY (tenant_id, id),
  constraint observed_clients_tenant_id_client_id_key UNIQUE (tenant_id, client_id),
  constraint observed_clients_tenant_id_id_fkey FOREIGN KEY (tenant_id, id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX observed_clients_ended ON public.observed_clients USING btree (grants_until);
CREATE INDEX observed_clients_listed ON public.observed_clients USING btree (tenant_id, first_seen_at DESC, id DESC);
alter table observed_clients enable row level security;
alter table observed_clients force row level security;
create policy tenant on observed_clients using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table operator_invites (
  tenant_id uuid not null,
  id uuid not null,
  organization_id uuid not null,
  token_sha256 bytea not null,
  role text default 'owner'::text not null,
  invited_by_agent_id uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  letters jsonb default '{}'::jsonb not null,
  appointed_scopes text[] default '{}'::text[] not null,
  constraint operator_invites_pkey PRIMARY KEY (tenant_id, id),
  constraint operator_invites_token_sha256_key UNIQUE (token_sha256),
  constraint operator_invites_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  constraint operator_invites_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint operator_invites_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint operator_invites_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX operator_invites_of_organization ON public.operator_invites USING btree (organization_id);
alter table operator_invites enable row level security;
alter table operator_invites force row level security;
create policy tenant on operator_invites using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table organization_events (
  organization_id uuid not null,
  sequence bigint not null,
  id uuid not null,
  type text not null,
  data jsonb not null,
  occurred_at timestamp with time zone not null,
  constraint organization_events_pkey PRIMARY KEY (organization_id, sequence),
  constraint organization_events_sequence_check CHECK ((sequence > 0)),
  constraint organization_events_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX organization_events_created ON public.organization_events USING btree (organization_id) WHERE (type = 'org.created'::text);
alter table organization_events enable row level security;
alter table organization_events force row level security;
create policy tenant on organization_events using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table organization_members (
  organization_id uuid not null,
  member_type text not null,
  member_id uuid not null,
  role text not null,
  created_at timestamp with time zone not null,
  id uuid default gen_random_uuid() not null,
  email text,
  expires_at timestamp with time zone,
  constraint organization_members_pkey PRIMARY KEY (organization_id, member_type, member_id),
  constraint organization_members_id_key UNIQUE (id),
  constraint organization_members_invited CHECK (((member_type = 'invitation'::text) = (email IS NOT NULL))),
  constraint organization_members_member_type_check CHECK ((member_type = ANY (ARRAY['agent'::text, 'account'::text, 'invitation'::text]))),
  constraint organization_members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  constraint organization_members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX organization_members_by_invitation ON public.organization_members USING btree (lower(email)) WHERE (email IS NOT NULL);
CREATE INDEX organization_members_by_member ON public.organization_members USING btree (member_type, member_id);
CREATE UNIQUE INDEX organization_members_invitations ON public.organization_members USING btree (organization_id, lower(email)) WHERE (email IS NOT NULL);
CREATE INDEX organization_members_listed ON public.organization_members USING btree (organization_id, created_at DESC, id DESC);
alter table organization_members enable row level security;
alter table organization_members force row level security;
create policy tenant on organization_members using ((svc_visible('00000000-0000-0000-0000-000000000000'::uuid) OR (EXISTS ( SELECT
   FROM tenants t
  WHERE ((t.organization_id = organization_members.organization_id) AND svc_visible(t.id)))))) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table organizations (
  id uuid not null,
  name text not null,
  slug text not null,
  status text default 'active'::text not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  made_in_tenant_id uuid,
  support_contact text,
  max_members integer,
  max_tenants integer,
  invitation_ttl_secs integer,
  billing_plan_id uuid,
  billing_suspended_at timestamp with time zone,
  registering_network bytea,
  last_event bigint default 0 not null,
  constraint organizations_pkey PRIMARY KEY (id),
  constraint organizations_slug_key UNIQUE (slug),
  constraint organizations_invitation_ttl_secs_check CHECK ((invitation_ttl_secs > 0)),
  constraint organizations_max_members_check CHECK ((max_members > 0)),
  constraint organizations_max_tenants_check CHECK ((max_tenants > 0)),
  constraint organizations_slug_check CHECK ((slug ~ '^[a-z0-9-]{3,63}$'::text)),
  constraint organizations_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
  constraint organizations_billing_plan_id_fkey FOREIGN KEY (billing_plan_id) REFERENCES billing_plans(id),
  constraint organizations_made_in_tenant_id_fkey FOREIGN KEY (made_in_tenant_id) REFERENCES tenants(id)
);
CREATE INDEX organizations_listed ON public.organizations USING btree (created_at DESC, id DESC);
CREATE INDEX organizations_made_in ON public.organizations USING btree (made_in_tenant_id) WHERE (made_in_tenant_id IS NOT NULL);
CREATE INDEX organizations_of_plan ON public.organizations USING btree (billing_plan_id) WHERE (billing_plan_id IS NOT NULL);
alter table organizations enable row level security;
alter table organizations force row level security;
create policy tenant on organizations using ((svc_visible('00000000-0000-0000-0000-000000000000'::uuid) OR (EXISTS ( SELECT
   FROM tenants t
  WHERE ((t.organization_id = organizations.id) AND svc_visible(t.id)))))) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table outgoing_mail (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  status text not null,
  letter_sealed bytea,
  attempts integer default 0 not null,
  next_attempt_at timestamp with time zone,
  lease uuid,
  leased_until timestamp with time zone,
  error text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  constraint outgoing_mail_pkey PRIMARY KEY (tenant_id, id),
  constraint outgoing_mail_attempts_check CHECK ((attempts >= 0)),
  constraint outgoing_mail_check CHECK (((status = 'queued'::text) = (letter_sealed IS NOT NULL))),
  constraint outgoing_mail_check1 CHECK (((status = 'queued'::text) = (next_attempt_at IS NOT NULL))),
  constraint outgoing_mail_check2 CHECK (((status = 'queued'::text) = (finished_at IS NULL))),
  constraint outgoing_mail_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'sent'::text, 'failed'::text, 'expired'::text, 'dropped'::text]))),
  constraint outgoing_mail_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX outgoing_mail_due ON public.outgoing_mail USING btree (next_attempt_at) WHERE (status = 'queued'::text);
CREATE INDEX outgoing_mail_finished ON public.outgoing_mail USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX outgoing_mail_queued ON public.outgoing_mail USING btree (tenant_id) WHERE (status = 'queued'::text);
alter table outgoing_mail enable row level security;
alter table outgoing_mail force row level security;
create policy tenant on outgoing_mail using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table passkey_ceremonies (
  tenant_id uuid not null,
  challenge_sha256 bytea not null,
  purpose text not null,
  browser_sha256 bytea not null,
  session_id uuid,
  expires_at timestamp with time zone not null,
  constraint passkey_ceremonies_pkey PRIMARY KEY (tenant_id, challenge_sha256),
  constraint passkey_ceremonies_challenge_sha256_key UNIQUE (challenge_sha256),
  constraint passkey_ceremonies_browser_sha256_check CHECK ((length(browser_sha256) = 32)),
  constraint passkey_ceremonies_challenge_sha256_check CHECK ((length(challenge_sha256) = 32)),
  constraint passkey_ceremonies_check CHECK (((session_id IS NULL) = (purpose = 'sign_in'::text))),
  constraint passkey_ceremonies_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'second_factor'::text, 'registration'::text, 'conditional'::text]))) NOT VALID,
  constraint passkey_ceremonies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX passkey_ceremonies_expired ON public.passkey_ceremonies USING btree (expires_at);
alter table passkey_ceremonies enable row level security;
alter table passkey_ceremonies force row level security;
create policy tenant on passkey_ceremonies using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table passkeys (
  account_id uuid not null,
  id uuid not null,
  credential_id bytea not null,
  public_key bytea not null,
  counter bigint not null,
  device_bound boolean not null,
  backed_up boolean not null,
  transports text[] not null,
  aaguid uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  last_used_at timestamp with time zone,
  user_verified boolean default true not null,
  constraint passkeys_pkey PRIMARY KEY (account_id, id),
  constraint passkeys_credential_id_key UNIQUE (credential_id),
  constraint passkeys_check CHECK ((NOT (device_bound AND backed_up))),
  constraint passkeys_counter_check CHECK ((counter >= 0)),
  constraint passkeys_credential_id_check CHECK (((length(credential_id) >= 1) AND (length(credential_id) <= 1023))),
  constraint passkeys_name_check CHECK (((length(name) >= 1) AND (length(name) <= 60))),
  constraint passkeys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
alter table passkeys enable row level security;
alter table passkeys force row level security;
create policy crossing on passkeys using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table payment_links (
  tenant_id uuid not null,
  id uuid not null,
  token text not null,
  price_id uuid not null,
  quantity integer not null,
  metadata jsonb not null,
  x402 jsonb,
  active boolean default true not null,
  created_at timestamp with time zone not null,
  constraint payment_links_pkey PRIMARY KEY (tenant_id, id),
  constraint payment_links_token_key UNIQUE (token),
  constraint payment_links_quantity_check CHECK (((quantity >= 1) AND (quantity <= 999))),
  constraint payment_links_token_check CHECK ((length(token) >= 22)),
  constraint payment_links_tenant_id_price_id_fkey FOREIGN KEY (tenant_id, price_id) REFERENCES prices(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX payment_links_listed ON public.payment_links USING btree (tenant_id, created_at DESC, id DESC);
alter table payment_links enable row level security;
alter table payment_links force row level security;
create policy tenant on payment_links using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table payouts (
  tenant_id uuid not null,
  id uuid not null,
  rail text not null,
  amount_minor bigint not null,
  currency text not null,
  status text default 'submitted'::text not null,
  failure_code text,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint payouts_pkey PRIMARY KEY (tenant_id, id),
  constraint payouts_amount_minor_check CHECK ((amount_minor > 0)),
  constraint payouts_check CHECK (((status = 'submitted'::text) = (due_at IS NOT NULL))),
  constraint payouts_check1 CHECK (((status = 'failed'::text) = (failure_code IS NOT NULL))),
  constraint payouts_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint payouts_status_check CHECK ((status = ANY (ARRAY['submitted'::text, 'paid'::text, 'failed'::text]))),
  constraint payouts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX payouts_due ON public.payouts USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX payouts_listed ON public.payouts USING btree (tenant_id, created_at DESC, id DESC);
alter table payouts enable row level security;
alter table payouts force row level security;
create policy tenant on payouts using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table pow_challenges (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  status text default 'issued'::text not null,
  challenge_token text not null,
  difficulty_bits integer not null,
  min_duration_secs integer not null,
  invalid_proofs integer default 0 not null,
  name text not null,
  did text not null,
  key_algorithm text not null,
  public_key bytea not null,
  fingerprint text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  consumed_at timestamp with time zone,
  anchor_type text default 'did_key'::text not null,
  chain_anchor text,
  chain_block bigint,
  constraint pow_challenges_pkey PRIMARY KEY (tenant_id, id),
  constraint pow_challenges_anchor_type_check CHECK ((anchor_type = ANY (ARRAY['did_key'::text, 'did_web'::text, 'erc8004'::text]))) NOT VALID,
  constraint pow_challenges_check CHECK (((status = 'consumed'::text) = (consumed_at IS NOT NULL))),
  constraint pow_challenges_difficulty_bits_check CHECK (((difficulty_bits >= 1) AND (difficulty_bits <= 28))),
  constraint pow_challenges_key_algorithm_check CHECK ((key_algorithm = ANY (ARRAY['ed25519'::text, 'es256'::text]))),
  constraint pow_challenges_kind_check CHECK ((kind = ANY (ARRAY['agent'::text, 'workspace'::text]))),
  constraint pow_challenges_min_duration_secs_check CHECK (((min_duration_secs >= 0) AND (min_duration_secs <= 60))),
  constraint pow_challenges_status_check CHECK ((status = ANY (ARRAY['issued'::text, 'consumed'::text, 'expired'::text]))),
  constraint pow_challenges_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX pow_challenges_by_id ON public.pow_challenges USING btree (id);
CREATE INDEX pow_challenges_expired ON public.pow_challenges USING btree (expires_at);
alter table pow_challenges enable row level security;
alter table pow_challenges force row level security;
create policy tenant on pow_challenges using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table prices (
  tenant_id uuid not null,
  id uuid not null,
  product_id uuid not null,
  amount_minor bigint not null,
  currency text not null,
  recurring_interval text,
  recurring_interval_count integer,
  active boolean default true not null,
  created_at timestamp with time zone not null,
  constraint prices_pkey PRIMARY KEY (tenant_id, id),
  constraint prices_id_key UNIQUE (id),
  constraint prices_amount_minor_check CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint prices_check CHECK (((recurring_interval IS NULL) = (recurring_interval_count IS NULL))),
  constraint prices_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint prices_recurring_interval_check CHECK ((recurring_interval = ANY (ARRAY['day'::text, 'week'::text, 'month'::text, 'year'::text]))),
  constraint prices_recurring_interval_count_check CHECK (((recurring_interval_count >= 1) AND (recurring_interval_count <= 365))),
  constraint prices_tenant_id_product_id_fkey FOREIGN KEY (tenant_id, product_id) REFERENCES products(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX prices_listed ON public.prices USING btree (tenant_id, created_at DESC, id DESC);
alter table prices enable row level security;
alter table prices force row level security;
create policy tenant on prices using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table products (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  active boolean default true not null,
  created_at timestamp with time zone not null,
  constraint products_pkey PRIMARY KEY (tenant_id, id),
  constraint products_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX products_listed ON public.products USING btree (tenant_id, created_at DESC, id DESC);
alter table products enable row level security;
alter table products force row level security;
create policy tenant on products using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table recovery_codes (
  account_id uuid not null,
  code_sha256 bytea not null,
  created_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint recovery_codes_pkey PRIMARY KEY (account_id, code_sha256),
  constraint recovery_codes_code_sha256_check CHECK ((length(code_sha256) = 32)),
  constraint recovery_codes_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
alter table recovery_codes enable row level security;
alter table recovery_codes force row level security;
create policy crossing on recovery_codes using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table refresh_families (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  client_id uuid not null,
  scopes text[] not null,
  audience text[] not null,
  jkt text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  revoked_reason text,
  subject text,
  level smallint,
  amr text[],
  auth_time timestamp with time zone,
  authorization_details jsonb,
  claims jsonb,
  browser_session_id uuid,
  resource_ids uuid[],
  document_sha256 text,
  constraint refresh_families_pkey PRIMARY KEY (tenant_id, id),
  constraint refresh_families_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint refresh_families_tenant_id_session_id_fkey FOREIGN KEY (tenant_id, session_id) REFERENCES sessions(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX refresh_families_expired ON public.refresh_families USING btree (expires_at);
CREATE INDEX refresh_families_of_browser ON public.refresh_families USING btree (browser_session_id) WHERE (browser_session_id IS NOT NULL);
CREATE INDEX refresh_families_of_observed ON public.refresh_families USING btree (tenant_id, client_id) WHERE (document_sha256 IS NOT NULL);
CREATE INDEX refresh_families_of_session ON public.refresh_families USING btree (session_id);
alter table refresh_families enable row level security;
alter table refresh_families force row level security;
create policy tenant on refresh_families using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table refresh_tokens (
  tenant_id uuid not null,
  family_id uuid not null,
  generation integer not null,
  token_sha256 bytea not null,
  issued_at timestamp with time zone not null,
  rotated_at timestamp with time zone,
  successor_answer bytea,
  constraint refresh_tokens_pkey PRIMARY KEY (tenant_id, family_id, generation),
  constraint refresh_tokens_token_sha256_key UNIQUE (token_sha256),
  constraint refresh_tokens_check CHECK (((successor_answer IS NULL) OR (rotated_at IS NOT NULL))),
  constraint refresh_tokens_generation_check CHECK ((generation >= 0)),
  constraint refresh_tokens_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint refresh_tokens_tenant_id_family_id_fkey FOREIGN KEY (tenant_id, family_id) REFERENCES refresh_families(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX refresh_tokens_answers ON public.refresh_tokens USING btree (rotated_at) WHERE (successor_answer IS NOT NULL);
alter table refresh_tokens enable row level security;
alter table refresh_tokens force row level security;
create policy tenant on refresh_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table refunds (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  amount_minor bigint not null,
  reason text,
  status text default 'pending'::text not null,
  failure_code text,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  external_reference text,
  constraint refunds_pkey PRIMARY KEY (tenant_id, id),
  constraint refunds_amount_minor_check CHECK ((amount_minor > 0)),
  constraint refunds_check CHECK (((status = 'pending'::text) = (due_at IS NOT NULL))),
  constraint refunds_check1 CHECK (((status <> 'recorded'::text) OR (external_reference IS NOT NULL))),
  constraint refunds_external_reference_check CHECK (((length(external_reference) >= 1) AND (length(external_reference) <= 255))),
  constraint refunds_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'succeeded'::text, 'failed'::text, 'recorded'::text]))),
  constraint refunds_tenant_id_charge_id_fkey FOREIGN KEY (tenant_id, charge_id) REFERENCES charges(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX refunds_due ON public.refunds USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX refunds_of_charge ON public.refunds USING btree (tenant_id, charge_id);
alter table refunds enable row level security;
alter table refunds force row level security;
create policy tenant on refunds using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table registration_tokens (
  tenant_id uuid not null,
  id uuid not null,
  token_sha256 bytea not null,
  scopes text[] not null,
  max_uses integer not null,
  uses integer default 0 not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  maker_type text,
  maker_id text,
  scope_bound text[],
  constraint registration_tokens_pkey PRIMARY KEY (tenant_id, id),
  constraint registration_tokens_token_sha256_key UNIQUE (token_sha256),
  constraint registration_tokens_check CHECK (((uses >= 0) AND (uses <= max_uses))),
  constraint registration_tokens_check1 CHECK (((maker_type IS NULL) = (maker_id IS NULL))),
  constraint registration_tokens_maker_type_check CHECK ((maker_type = ANY (ARRAY['human'::text, 'agent'::text, 'service'::text]))),
  constraint registration_tokens_max_uses_check CHECK ((max_uses > 0)),
  constraint registration_tokens_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint registration_tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX registration_tokens_expired ON public.registration_tokens USING btree (expires_at);
alter table registration_tokens enable row level security;
alter table registration_tokens force row level security;
create policy tenant on registration_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table registry_cursors (
  network text not null,
  block bigint not null,
  block_hash text,
  version bigint not null,
  read_at timestamp with time zone not null,
  constraint registry_cursors_pkey PRIMARY KEY (network)
);

create table remote_documents (
  url text not null,
  kind text not null,
  document jsonb not null,
  sha256 text not null,
  fetched_at timestamp with time zone not null,
  fresh_until timestamp with time zone not null,
  constraint remote_documents_pkey PRIMARY KEY (kind, url),
  constraint remote_documents_kind_check CHECK ((kind = ANY (ARRAY['client'::text, 'keys'::text])))
);
CREATE INDEX remote_documents_ended ON public.remote_documents USING btree (fresh_until);

create table resource_consents (
  tenant_id uuid not null,
  subject text not null,
  client_id uuid not null,
  resource_id uuid not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  asks_again boolean default false not null,
  constraint resource_consents_pkey PRIMARY KEY (tenant_id, subject, client_id, resource_id),
  constraint resource_consents_tenant_id_client_id_fkey FOREIGN KEY (tenant_id, client_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE,
  constraint resource_consents_tenant_id_resource_id_fkey FOREIGN KEY (tenant_id, resource_id) REFERENCES api_resources(tenant_id, id) ON DELETE CASCADE,
  constraint resource_consents_tenant_id_subject_fkey FOREIGN KEY (tenant_id, subject) REFERENCES tenant_users(tenant_id, sub) ON DELETE CASCADE
);
CREATE INDEX resource_consents_of_client ON public.resource_consents USING btree (tenant_id, client_id);
CREATE INDEX resource_consents_of_resource ON public.resource_consents USING btree (tenant_id, resource_id);
alter table resource_consents enable row level security;
alter table resource_consents force row level security;
create policy tenant on resource_consents using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table revoked_tokens (
  tenant_id uuid not null,
  id uuid not null,
  revoked_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint revoked_tokens_pkey PRIMARY KEY (tenant_id, id),
  constraint revoked_tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX revoked_tokens_ended ON public.revoked_tokens USING btree (expires_at);
alter table revoked_tokens enable row level security;
alter table revoked_tokens force row level security;
create policy tenant on revoked_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table sandbox_mandates (
  tenant_id uuid not null,
  id uuid not null,
  outcome text not null,
  created_at timestamp with time zone not null,
  constraint sandbox_mandates_pkey PRIMARY KEY (tenant_id, id),
  constraint sandbox_mandates_outcome_check CHECK ((outcome = ANY (ARRAY['succeed'::text, 'decline'::text]))),
  constraint sandbox_mandates_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
alter table sandbox_mandates enable row level security;
alter table sandbox_mandates force row level security;
create policy tenant on sandbox_mandates using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table sandbox_payments (
  tenant_id uuid not null,
  id uuid not null,
  kind text not null,
  amount_minor bigint not null,
  currency text not null,
  outcome text not null,
  created_at timestamp with time zone not null,
  constraint sandbox_payments_pkey PRIMARY KEY (tenant_id, id),
  constraint sandbox_payments_kind_check CHECK ((kind = ANY (ARRAY['charge'::text, 'refund'::text, 'payout'::text]))),
  constraint sandbox_payments_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
alter table sandbox_payments enable row level security;
alter table sandbox_payments force row level security;
create policy tenant on sandbox_payments using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table scim_groups (
  tenant_id uuid not null,
  id uuid not null,
  display_name text not null,
  display_name_key text not null,
  role text not null,
  external_id text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint scim_groups_pkey PRIMARY KEY (tenant_id, id),
  constraint scim_groups_display_name UNIQUE (tenant_id, display_name_key),
  constraint scim_groups_role UNIQUE (tenant_id, role),
  constraint scim_groups_check CHECK ((display_name_key = lower(display_name))),
  constraint scim_groups_display_name_check CHECK (((char_length(display_name) >= 1) AND (char_length(display_name) <= 255))),
  constraint scim_groups_external_id_check CHECK (((char_length(external_id) >= 1) AND (char_length(external_id) <= 1024))),
  constraint scim_groups_role_check CHECK ((role ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'::text)),
  constraint scim_groups_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
alter table scim_groups enable row level security;
alter table scim_groups force row level security;
create policy tenant on scim_groups using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table scim_tokens (
  tenant_id uuid not null,
  id uuid not null,
  token_sha256 bytea not null,
  organization_id uuid,
  description text,
  roles text[] default '{}'::text[] not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint scim_tokens_pkey PRIMARY KEY (tenant_id, id),
  constraint scim_tokens_token_sha256_key UNIQUE (token_sha256),
  constraint scim_tokens_description_check CHECK ((char_length(description) <= 255)),
  constraint scim_tokens_roles_check CHECK ((roles <@ ARRAY['admin'::text, 'owner'::text])),
  constraint scim_tokens_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint scim_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint scim_tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX scim_tokens_listed ON public.scim_tokens USING btree (tenant_id, created_at DESC, id DESC);
alter table scim_tokens enable row level security;
alter table scim_tokens force row level security;
create policy tenant on scim_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table scim_users (
  tenant_id uuid not null,
  user_id uuid not null,
  user_name text not null,
  user_name_key text not null,
  external_id text,
  attributes jsonb default '{}'::jsonb not null,
  updated_at timestamp with time zone not null,
  constraint scim_users_pkey PRIMARY KEY (tenant_id, user_id),
  constraint scim_users_user_name UNIQUE (tenant_id, user_name_key),
  constraint scim_users_attributes_check CHECK ((pg_column_size(attributes) <= 262144)),
  constraint scim_users_check CHECK ((user_name_key = lower(user_name))),
  constraint scim_users_external_id_check CHECK (((char_length(external_id) >= 1) AND (char_length(external_id) <= 1024))),
  constraint scim_users_user_name_check CHECK (((char_length(user_name) >= 1) AND (char_length(user_name) <= 320))),
  constraint scim_users_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES tenant_users(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX scim_users_external_id ON public.scim_users USING btree (tenant_id, external_id) WHERE (external_id IS NOT NULL);
alter table scim_users enable row level security;
alter table scim_users force row level security;
create policy tenant on scim_users using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table session_applications (
  tenant_id uuid not null,
  session_id uuid not null,
  application_id uuid not null,
  subject text not null,
  ended_at timestamp with time zone,
  due_at timestamp with time zone not null,
  attempts integer default 0 not null,
  constraint session_applications_pkey PRIMARY KEY (tenant_id, session_id, application_id),
  constraint session_applications_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX session_applications_ended ON public.session_applications USING btree (due_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX session_applications_of_person ON public.session_applications USING btree (tenant_id, subject);
CREATE INDEX session_applications_of_tenant ON public.session_applications USING btree (tenant_id, due_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX session_applications_open ON public.session_applications USING btree (due_at) WHERE (ended_at IS NULL);
alter table session_applications enable row level security;
alter table session_applications force row level security;
create policy tenant on session_applications using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table sessions (
  tenant_id uuid not null,
  id uuid not null,
  subject text not null,
  subject_type text not null,
  agent_id uuid,
  client_id uuid not null,
  organization_id uuid,
  key_fingerprint text,
  amr text[] not null,
  auth_time timestamp with time zone not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  ended_reason text,
  constraint sessions_pkey PRIMARY KEY (tenant_id, id),
  constraint sessions_agent_named CHECK (((subject_type <> 'agent'::text) OR (agent_id IS NOT NULL))),
  constraint sessions_subject_type_check CHECK ((subject_type = ANY (ARRAY['human'::text, 'agent'::text]))),
  constraint sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX sessions_by_agent ON public.sessions USING btree (agent_id) WHERE (ended_at IS NULL);
CREATE INDEX sessions_by_subject ON public.sessions USING btree (tenant_id, subject) WHERE (ended_at IS NULL);
CREATE INDEX sessions_expired ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_of_agent ON public.sessions USING btree (tenant_id, agent_id) WHERE (ended_at IS NULL);
alter table sessions enable row level security;
alter table sessions force row level security;
create policy tenant on sessions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table settlements (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  rail text not null,
  amount_minor bigint not null,
  currency text not null,
  status text default 'created'::text not null,
  hold_reason text,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint settlements_pkey PRIMARY KEY (tenant_id, id),
  constraint settlements_tenant_id_charge_id_key UNIQUE (tenant_id, charge_id),
  constraint settlements_amount_minor_check CHECK ((amount_minor >= 0)),
  constraint settlements_check CHECK (((status = 'held'::text) = (hold_reason IS NOT NULL))),
  constraint settlements_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint settlements_hold_reason_check CHECK ((hold_reason = ANY (ARRAY['clearing'::text, 'dispute'::text]))),
  constraint settlements_status_check CHECK ((status = ANY (ARRAY['created'::text, 'held'::text, 'released'::text]))),
  constraint settlements_tenant_id_charge_id_fkey FOREIGN KEY (tenant_id, charge_id) REFERENCES charges(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX settlements_due ON public.settlements USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX settlements_listed ON public.settlements USING btree (tenant_id, created_at DESC, id DESC);
alter table settlements enable row level security;
alter table settlements force row level security;
create policy tenant on settlements using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table sign_in_flows (
  tenant_id uuid not null,
  token_sha256 bytea not null,
  level smallint not null,
  max_age_secs integer,
  since timestamp with time zone,
  sub text,
  return_to text not null,
  reason jsonb not null,
  login_hint text,
  ui_locales text,
  form_targets text[] not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint sign_in_flows_pkey PRIMARY KEY (tenant_id, token_sha256),
  constraint sign_in_flows_token_sha256_key UNIQUE (token_sha256),
  constraint sign_in_flows_level_check CHECK (((level >= 1) AND (level <= 3))),
  constraint sign_in_flows_max_age_secs_check CHECK ((max_age_secs >= 0)),
  constraint sign_in_flows_return_to_check CHECK ((return_to ~ '^/([^/\\]|$)'::text)),
  constraint sign_in_flows_token_sha256_check CHECK ((length(token_sha256) = 32)),
  constraint sign_in_flows_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_flows_expired ON public.sign_in_flows USING btree (expires_at);
alter table sign_in_flows enable row level security;
alter table sign_in_flows force row level security;
create policy tenant on sign_in_flows using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table signal_events (
  tenant_id uuid not null,
  stream_id uuid not null,
  id uuid not null,
  place bigint generated always as identity not null,
  txn text,
  type text not null,
  subject jsonb not null,
  event jsonb not null,
  issued_at timestamp with time zone not null,
  constraint signal_events_pkey PRIMARY KEY (tenant_id, stream_id, id),
  constraint signal_events_tenant_id_stream_id_fkey FOREIGN KEY (tenant_id, stream_id) REFERENCES signal_streams(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX signal_events_in_order ON public.signal_events USING btree (tenant_id, stream_id, place);
alter table signal_events enable row level security;
alter table signal_events force row level security;
create policy tenant on signal_events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table signal_removed_subjects (
  tenant_id uuid not null,
  stream_id uuid not null,
  principal text not null,
  session text not null,
  created_at timestamp with time zone not null,
  constraint signal_removed_subjects_pkey PRIMARY KEY (tenant_id, stream_id, principal, session),
  constraint signal_removed_subjects_tenant_id_stream_id_fkey FOREIGN KEY (tenant_id, stream_id) REFERENCES signal_streams(tenant_id, id) ON DELETE CASCADE
);
alter table signal_removed_subjects enable row level security;
alter table signal_removed_subjects force row level security;
create policy tenant on signal_removed_subjects using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table signal_streams (
  tenant_id uuid not null,
  id uuid not null,
  receiver text not null,
  application_id uuid,
  endpoint_url text,
  authorization_sealed bytea,
  events_requested text[],
  description text,
  status text default 'enabled'::text not null,
  reason text,
  status_since timestamp with time zone not null,
  read_to bigint not null,
  verified_at timestamp with time zone,
  due_at timestamp with time zone,
  attempts integer default 0 not null,
  lease uuid,
  leased_until timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint signal_streams_pkey PRIMARY KEY (tenant_id, id),
  constraint signal_streams_status_check CHECK ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text]))),
  constraint signal_streams_tenant_id_application_id_fkey FOREIGN KEY (tenant_id, application_id) REFERENCES applications(tenant_id, id) ON DELETE CASCADE,
  constraint signal_streams_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX signal_streams_due ON public.signal_streams USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX signal_streams_of_application ON public.signal_streams USING btree (tenant_id, application_id);
CREATE INDEX signal_streams_of_receiver ON public.signal_streams USING btree (tenant_id, receiver, created_at);
alter table signal_streams enable row level security;
alter table signal_streams force row level security;
create policy tenant on signal_streams using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table signing_keys (
  tenant_id uuid not null,
  kid text not null,
  algorithm text not null,
  state text not null,
  public_jwk jsonb not null,
  private_sealed bytea,
  created_at timestamp with time zone not null,
  current_since timestamp with time zone,
  verifiable_until timestamp with time zone,
  constraint signing_keys_pkey PRIMARY KEY (tenant_id, kid),
  constraint signing_keys_algorithm_check CHECK ((algorithm = ANY (ARRAY['ES256'::text, 'EdDSA'::text, 'RS256'::text]))) NOT VALID,
  constraint signing_keys_check CHECK (((state = 'retired'::text) = (private_sealed IS NULL))),
  constraint signing_keys_check1 CHECK (((state = 'retired'::text) = (verifiable_until IS NOT NULL))),
  constraint signing_keys_check2 CHECK (((state = 'next'::text) OR (current_since IS NOT NULL))),
  constraint signing_keys_state_check CHECK ((state = ANY (ARRAY['next'::text, 'current'::text, 'retired'::text])))
);
CREATE UNIQUE INDEX signing_keys_current ON public.signing_keys USING btree (tenant_id, algorithm) WHERE (state = 'current'::text);
CREATE UNIQUE INDEX signing_keys_next ON public.signing_keys USING btree (tenant_id, algorithm) WHERE (state = 'next'::text);
alter table signing_keys enable row level security;
alter table signing_keys force row level security;
create policy tenant on signing_keys using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table siwe_nonces (
  tenant_id uuid not null,
  nonce_sha256 bytea not null,
  purpose text not null,
  browser_sha256 bytea not null,
  session_id uuid,
  expires_at timestamp with time zone not null,
  constraint siwe_nonces_pkey PRIMARY KEY (tenant_id, nonce_sha256),
  constraint siwe_nonces_nonce_sha256_key UNIQUE (nonce_sha256),
  constraint siwe_nonces_browser_sha256_check CHECK ((length(browser_sha256) = 32)),
  constraint siwe_nonces_check CHECK (((session_id IS NULL) = (purpose = 'sign_in'::text))),
  constraint siwe_nonces_nonce_sha256_check CHECK ((length(nonce_sha256) = 32)),
  constraint siwe_nonces_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'link'::text]))),
  constraint siwe_nonces_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX siwe_nonces_expired ON public.siwe_nonces USING btree (expires_at);
alter table siwe_nonces enable row level security;
alter table siwe_nonces force row level security;
create policy tenant on siwe_nonces using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table ssh_authorities (
  tenant_id uuid not null,
  credential_id uuid not null,
  list_public_key text not null,
  list_private_sealed bytea not null,
  revoked_keys text[] default '{}'::text[] not null,
  list_digest text,
  list_version bigint default 0 not null,
  created_at timestamp with time zone not null,
  constraint ssh_authorities_pkey PRIMARY KEY (tenant_id, credential_id),
  constraint ssh_authorities_tenant_id_credential_id_fkey FOREIGN KEY (tenant_id, credential_id) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
alter table ssh_authorities enable row level security;
alter table ssh_authorities force row level security;
create policy tenant on ssh_authorities using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table ssh_certificates (
  tenant_id uuid not null,
  credential_id uuid not null,
  serial numeric(20,0) not null,
  agent_id text not null,
  key_id text not null,
  target_host text not null,
  principals text[] not null,
  ca_public_key text not null,
  issued_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  grant_id uuid,
  delegation_id uuid,
  public_key text,
  revoked_reason text,
  constraint ssh_certificates_pkey PRIMARY KEY (tenant_id, credential_id, serial),
  constraint ssh_certificates_serial_check CHECK (((serial >= (1)::numeric) AND (serial <= '18446744073709551615'::numeric))),
  constraint ssh_certificates_tenant_id_credential_id_fkey FOREIGN KEY (tenant_id, credential_id) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX ssh_certificates_expiry ON public.ssh_certificates USING btree (expires_at);
CREATE INDEX ssh_certificates_of_agent ON public.ssh_certificates USING btree (agent_id) WHERE (revoked_at IS NULL);
CREATE INDEX ssh_certificates_of_delegation ON public.ssh_certificates USING btree (tenant_id, delegation_id) WHERE (delegation_id IS NOT NULL);
CREATE INDEX ssh_certificates_of_grant ON public.ssh_certificates USING btree (tenant_id, grant_id) WHERE (grant_id IS NOT NULL);
CREATE INDEX ssh_certificates_revoked ON public.ssh_certificates USING btree (tenant_id, credential_id) WHERE (revoked_at IS NOT NULL);
alter table ssh_certificates enable row level security;
alter table ssh_certificates force row level security;
create policy tenant on ssh_certificates using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table sso_providers (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  issuer text not null,
  client_id text not null,
  client_secret_sealed bytea,
  token_endpoint_auth_method text not null,
  scopes text[] not null,
  authorization_endpoint text,
  token_endpoint text,
  userinfo_endpoint text,
  jwks_uri text,
  trusted_acr_values text[] not null,
  provision boolean not null,
  active boolean not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  client_secret_sealed_stamp bytea,
  constraint sso_providers_pkey PRIMARY KEY (tenant_id, id),
  constraint sso_providers_check CHECK (((token_endpoint_auth_method = 'none'::text) = (client_secret_sealed IS NULL))),
  constraint sso_providers_token_endpoint_auth_method_check CHECK ((token_endpoint_auth_method = ANY (ARRAY['client_secret_basic'::text, 'client_secret_post'::text, 'none'::text]))),
  constraint sso_providers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX sso_providers_by_id ON public.sso_providers USING btree (id);
CREATE INDEX sso_providers_listed ON public.sso_providers USING btree (tenant_id, created_at DESC, id DESC);
alter table sso_providers enable row level security;
alter table sso_providers force row level security;
create policy tenant on sso_providers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table statements (
  tenant_id uuid not null,
  id uuid not null,
  currency text not null,
  first_sequence bigint not null,
  last_sequence bigint not null,
  opening_balance_minor bigint not null,
  closing_balance_minor bigint not null,
  totals jsonb not null,
  period_start timestamp with time zone not null,
  period_end timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint statements_pkey PRIMARY KEY (tenant_id, id),
  constraint statements_tenant_id_currency_first_sequence_key UNIQUE (tenant_id, currency, first_sequence),
  constraint statements_check CHECK ((last_sequence >= first_sequence)),
  constraint statements_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX statements_listed ON public.statements USING btree (tenant_id, created_at DESC, id DESC);
alter table statements enable row level security;
alter table statements force row level security;
create policy tenant on statements using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table status_entries (
  tenant_id uuid not null,
  list_id uuid not null,
  idx integer not null,
  ref text not null,
  status_query jsonb,
  expires_at timestamp with time zone not null,
  invalid_at timestamp with time zone,
  constraint status_entries_pkey PRIMARY KEY (tenant_id, list_id, idx),
  constraint status_entries_idx_check CHECK ((idx >= 0)),
  constraint status_entries_tenant_id_list_id_fkey FOREIGN KEY (tenant_id, list_id) REFERENCES status_lists(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX status_entries_invalid ON public.status_entries USING btree (tenant_id, list_id, idx) WHERE (invalid_at IS NOT NULL);
CREATE INDEX status_entries_of ON public.status_entries USING btree (tenant_id, ref);
alter table status_entries enable row level security;
alter table status_entries force row level security;
create policy tenant on status_entries using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table status_lists (
  tenant_id uuid not null,
  id uuid not null,
  purpose text not null,
  issuer text not null,
  size integer default 131072 not null,
  created_at timestamp with time zone not null,
  full_at timestamp with time zone,
  token text,
  token_invalid integer,
  signed_at timestamp with time zone,
  signing_at timestamp with time zone,
  constraint status_lists_pkey PRIMARY KEY (tenant_id, id),
  constraint status_lists_id_key UNIQUE (id),
  constraint status_lists_check CHECK ((((token IS NULL) = (signed_at IS NULL)) AND ((token IS NULL) = (token_invalid IS NULL)))),
  constraint status_lists_purpose_check CHECK ((purpose = ANY (ARRAY['credential'::text, 'access_token'::text]))),
  constraint status_lists_size_check CHECK (((size >= 131072) AND ((size & (size - 1)) = 0))),
  constraint status_lists_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX status_lists_full ON public.status_lists USING btree (full_at) WHERE (full_at IS NOT NULL);
CREATE INDEX status_lists_listed ON public.status_lists USING btree (created_at DESC, id DESC);
CREATE UNIQUE INDEX status_lists_open ON public.status_lists USING btree (tenant_id, purpose, issuer) WHERE (full_at IS NULL);
alter table status_lists enable row level security;
alter table status_lists force row level security;
create policy tenant on status_lists using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table subscriptions (
  tenant_id uuid not null,
  id uuid not null,
  product_id uuid not null,
  price_id uuid not null,
  amount_minor bigint not null,
  currency text not null,
  recurring_interval text not null,
  recurring_interval_count integer not null,
  customer_email text not null,
  buyer_country text,
  buyer_region text,
  metadata jsonb not null,
  status text not null,
  rail text,
  mandate text,
  period integer default 0 not null,
  anchor_at timestamp with time zone,
  current_period_start timestamp with time zone,
  current_period_end timestamp with time zone,
  attempts integer default 0 not null,
  cancel_at_period_end boolean default false not null,
  canceled_at timestamp with time zone,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint subscriptions_pkey PRIMARY KEY (tenant_id, id),
  constraint subscriptions_amount_minor_check CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint subscriptions_check CHECK (((status <> ALL (ARRAY['active'::text, 'past_due'::text])) OR ((rail IS NOT NULL) AND ((mandate IS NOT NULL) OR (rail = 'x402'::text)) AND (anchor_at IS NOT NULL) AND (current_period_end IS NOT NULL)))),
  constraint subscriptions_check1 CHECK (((status = ANY (ARRAY['active'::text, 'past_due'::text])) OR (due_at IS NULL))),
  constraint subscriptions_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint subscriptions_recurring_interval_check CHECK ((recurring_interval = ANY (ARRAY['day'::text, 'week'::text, 'month'::text, 'year'::text]))),
  constraint subscriptions_recurring_interval_count_check CHECK (((recurring_interval_count >= 1) AND (recurring_interval_count <= 365))),
  constraint subscriptions_status_check CHECK ((status = ANY (ARRAY['incomplete'::text, 'active'::text, 'past_due'::text, 'canceled'::text]))),
  constraint subscriptions_tenant_id_price_id_fkey FOREIGN KEY (tenant_id, price_id) REFERENCES prices(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX subscriptions_due ON public.subscriptions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX subscriptions_listed ON public.subscriptions USING btree (tenant_id, created_at DESC, id DESC);
alter table subscriptions enable row level security;
alter table subscriptions force row level security;
create policy tenant on subscriptions using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table svc_migrations (
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone default clock_timestamp() not null,
  duration_ms integer not null,
  oldest_build integer,
  constraint svc_migrations_pkey PRIMARY KEY (name)
);

create table tenant_assets (
  tenant_id uuid not null,
  kind text not null,
  sha256 bytea not null,
  media_type text not null,
  width integer not null,
  height integer not null,
  size_bytes integer not null,
  begun_at timestamp with time zone not null,
  shown_since timestamp with time zone,
  retired_at timestamp with time zone,
  constraint tenant_assets_pkey PRIMARY KEY (tenant_id, kind, sha256),
  constraint tenant_assets_check CHECK (((retired_at IS NULL) OR (shown_since IS NOT NULL))),
  constraint tenant_assets_height_check CHECK (((height >= 1) AND (height <= 512))),
  constraint tenant_assets_kind_check CHECK ((kind = ANY (ARRAY['logo'::text, 'favicon'::text]))),
  constraint tenant_assets_media_type_check CHECK ((media_type = ANY (ARRAY['image/webp'::text, 'image/png'::text]))),
  constraint tenant_assets_sha256_check CHECK ((length(sha256) = 32)),
  constraint tenant_assets_size_bytes_check CHECK ((size_bytes > 0)),
  constraint tenant_assets_width_check CHECK (((width >= 1) AND (width <= 512))),
  constraint tenant_assets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX tenant_assets_ended ON public.tenant_assets USING btree (COALESCE(retired_at, begun_at)) WHERE ((shown_since IS NULL) OR (retired_at IS NOT NULL));
CREATE UNIQUE INDEX tenant_assets_shown ON public.tenant_assets USING btree (tenant_id, kind) WHERE ((shown_since IS NOT NULL) AND (retired_at IS NULL));
alter table tenant_assets enable row level security;
alter table tenant_assets force row level security;
create policy tenant on tenant_assets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table tenant_transfers (
  tenant_id uuid not null,
  id uuid not null,
  from_organization_id uuid not null,
  to_organization_id uuid not null,
  status text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  decided_at timestamp with time zone,
  constraint tenant_transfers_pkey PRIMARY KEY (tenant_id, id),
  constraint tenant_transfers_id_key UNIQUE (id),
  constraint tenant_transfers_check CHECK ((from_organization_id <> to_organization_id)),
  constraint tenant_transfers_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text, 'canceled'::text, 'declined'::text, 'expired'::text]))),
  constraint tenant_transfers_from_organization_id_fkey FOREIGN KEY (from_organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint tenant_transfers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint tenant_transfers_to_organization_id_fkey FOREIGN KEY (to_organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX tenant_transfers_from ON public.tenant_transfers USING btree (from_organization_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX tenant_transfers_pending ON public.tenant_transfers USING btree (tenant_id) WHERE (status = 'pending'::text);
CREATE INDEX tenant_transfers_to ON public.tenant_transfers USING btree (to_organization_id, created_at DESC, id DESC);
alter table tenant_transfers enable row level security;
alter table tenant_transfers force row level security;
create policy tenant on tenant_transfers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table tenant_users (
  tenant_id uuid not null,
  id uuid not null,
  account_id uuid not null,
  sub text not null,
  status text not null,
  roles text[] default '{}'::text[] not null,
  fixture boolean default false not null,
  metadata jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  last_login_at timestamp with time zone,
  display_name text,
  suspended_from text,
  invited_as text,
  account_active boolean default true not null,
  given_name text,
  family_name text,
  picture text,
  locale text,
  zoneinfo text,
  phone_number text,
  phone_number_verified boolean default false not null,
  constraint tenant_users_pkey PRIMARY KEY (tenant_id, id),
  constraint tenant_users_tenant_id_account_id_key UNIQUE (tenant_id, account_id),
  constraint tenant_users_tenant_id_sub_key UNIQUE (tenant_id, sub),
  constraint tenant_users_family_name_check CHECK (((char_length(family_name) >= 1) AND (char_length(family_name) <= 120))),
  constraint tenant_users_given_name_check CHECK (((char_length(given_name) >= 1) AND (char_length(given_name) <= 120))),
  constraint tenant_users_invited_as_check CHECK ((char_length(invited_as) <= 320)),
  constraint tenant_users_locale_check CHECK (((char_length(locale) >= 1) AND (char_length(locale) <= 35))),
  constraint tenant_users_phone CHECK (((phone_number IS NOT NULL) OR (NOT phone_number_verified))),
  constraint tenant_users_phone_number_check CHECK ((phone_number ~ '^\+[1-9][0-9]{1,14}$'::text)),
  constraint tenant_users_picture_check CHECK (((char_length(picture) >= 1) AND (char_length(picture) <= 2048))),
  constraint tenant_users_status_check CHECK ((status = ANY (ARRAY['invited'::text, 'pre_provisioned'::text, 'active'::text, 'suspended'::text, 'removed'::text]))),
  constraint tenant_users_suspended_from_check CHECK ((suspended_from = ANY (ARRAY['invited'::text, 'pre_provisioned'::text, 'active'::text]))),
  constraint tenant_users_zoneinfo_check CHECK (((char_length(zoneinfo) >= 1) AND (char_length(zoneinfo) <= 64))),
  constraint tenant_users_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint tenant_users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX tenant_users_fixtures ON public.tenant_users USING btree (tenant_id, created_at) WHERE fixture;
CREATE INDEX tenant_users_listed ON public.tenant_users USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX tenant_users_of_account ON public.tenant_users USING btree (account_id);
alter table tenant_users enable row level security;
alter table tenant_users force row level security;
create policy tenant on tenant_users using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table tenants (
  id uuid not null,
  organization_id uuid,
  name text not null,
  slug text not null,
  environment text not null,
  status text default 'active'::text not null,
  control_plane boolean default false not null,
  admit_agents boolean not null,
  direct_agent_registration boolean default false not null,
  credential_issuer_enabled boolean default false not null,
  support_contact text,
  settings jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  suspended_at timestamp with time zone,
  billing jsonb,
  constraint tenants_pkey PRIMARY KEY (id),
  constraint tenants_slug_key UNIQUE (slug),
  constraint tenants_check CHECK ((control_plane = (organization_id IS NULL))),
  constraint tenants_environment_check CHECK ((environment = ANY (ARRAY['sandbox'::text, 'production'::text]))),
  constraint tenants_slug_check CHECK ((slug ~ '^[a-z0-9-]{3,63}$'::text)),
  constraint tenants_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text]))),
  constraint tenants_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id)
);
CREATE UNIQUE INDEX tenants_control_plane ON public.tenants USING btree (control_plane) WHERE control_plane;
CREATE INDEX tenants_listed ON public.tenants USING btree (created_at DESC, id DESC) WHERE (organization_id IS NOT NULL);
CREATE INDEX tenants_of_organization ON public.tenants USING btree (organization_id, created_at DESC, id DESC);
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants using (svc_visible(id)) with check (svc_visible(id));

create table totp_factors (
  account_id uuid not null,
  id uuid not null,
  secret_sealed bytea not null,
  created_at timestamp with time zone not null,
  confirmed_at timestamp with time zone,
  last_step bigint,
  last_used_at timestamp with time zone,
  secret_sealed_stamp bytea,
  constraint totp_factors_pkey PRIMARY KEY (account_id, id),
  constraint totp_factors_check CHECK (((confirmed_at IS NULL) OR (last_step IS NOT NULL))),
  constraint totp_factors_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX totp_factors_confirmed ON public.totp_factors USING btree (account_id) WHERE (confirmed_at IS NOT NULL);
CREATE UNIQUE INDEX totp_factors_offered ON public.totp_factors USING btree (account_id) WHERE (confirmed_at IS NULL);
alter table totp_factors enable row level security;
alter table totp_factors force row level security;
create policy crossing on totp_factors using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table trusted_issuer_rules (
  tenant_id uuid not null,
  id uuid not null,
  trusted_issuer_id uuid not null,
  name text not null,
  client_id uuid not null,
  conditions jsonb not null,
  scopes text[] not null,
  resources text[] not null,
  max_lifetime_secs integer,
  position integer not null,
  created_at timestamp with time zone not null,
  constraint trusted_issuer_rules_pkey PRIMARY KEY (tenant_id, id),
  constraint trusted_issuer_rules_id_key UNIQUE (id),
  constraint trusted_issuer_rules_max_lifetime_secs_check CHECK ((max_lifetime_secs > 0)),
  constraint trusted_issuer_rules_tenant_id_trusted_issuer_id_fkey FOREIGN KEY (tenant_id, trusted_issuer_id) REFERENCES trusted_issuers(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX trusted_issuer_rules_order ON public.trusted_issuer_rules USING btree (tenant_id, trusted_issuer_id, "position", created_at, id);
alter table trusted_issuer_rules enable row level security;
alter table trusted_issuer_rules force row level security;
create policy tenant on trusted_issuer_rules using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table trusted_issuers (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  issuer text not null,
  purposes text[] not null,
  kind text not null,
  status text not null,
  jwks_uri text,
  jwks jsonb,
  spiffe jsonb,
  audiences text[] not null,
  allowed_algs text[] not null,
  max_token_age_secs integer not null,
  clock_skew_secs integer not null,
  require_jti boolean not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  subject_mapping text,
  email_domains text[] default '{}'::text[] not null,
  trust_aud_sub boolean default false not null,
  constraint trusted_issuers_pkey PRIMARY KEY (tenant_id, id),
  constraint trusted_issuers_id_key UNIQUE (id),
  constraint trusted_issuers_clock_skew_secs_check CHECK ((clock_skew_secs >= 0)),
  constraint trusted_issuers_max_token_age_secs_check CHECK ((max_token_age_secs > 0)),
  constraint trusted_issuers_purposes_check CHECK ((cardinality(purposes) = 1)),
  constraint trusted_issuers_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text]))),
  constraint trusted_issuers_subject_mapping_check CHECK ((subject_mapping = ANY (ARRAY['link'::text, 'email'::text, 'jit'::text]))),
  constraint trusted_issuers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX trusted_issuers_listed ON public.trusted_issuers USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX trusted_issuers_one ON public.trusted_issuers USING btree (tenant_id, issuer, purposes);
alter table trusted_issuers enable row level security;
alter table trusted_issuers force row level security;
create policy tenant on trusted_issuers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table unnumbered_events (
  tenant_id uuid not null,
  place bigint generated always as identity not null,
  id uuid not null,
  type text not null,
  occurred_at timestamp with time zone not null,
  data jsonb,
  line text not null,
  event_about jsonb,
  constraint unnumbered_events_pkey PRIMARY KEY (tenant_id, place)
);
alter table unnumbered_events enable row level security;
alter table unnumbered_events force row level security;
create policy tenant on unnumbered_events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
create policy tenants on unnumbered_events for insert with check (svc_named(tenant_id));

create table upstream_identities (
  account_id uuid not null,
  id uuid not null,
  provider text not null,
  tenant_id uuid,
  issuer text not null,
  subject text not null,
  email text,
  created_at timestamp with time zone not null,
  last_used_at timestamp with time zone not null,
  constraint upstream_identities_pkey PRIMARY KEY (account_id, id),
  constraint upstream_identities_provider_issuer_subject_key UNIQUE (provider, issuer, subject),
  constraint upstream_identities_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  constraint upstream_identities_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX upstream_identities_of_tenant ON public.upstream_identities USING btree (tenant_id) WHERE (tenant_id IS NOT NULL);
alter table upstream_identities enable row level security;
alter table upstream_identities force row level security;
create policy crossing on upstream_identities using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid)) with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

create table upstream_sign_ins (
  tenant_id uuid not null,
  state_sha256 bytea not null,
  browser_sha256 bytea not null,
  provider text not null,
  linking_session_id uuid,
  sealed bytea not null,
  fresh boolean not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint upstream_sign_ins_pkey PRIMARY KEY (tenant_id, state_sha256),
  constraint upstream_sign_ins_state_sha256_key UNIQUE (state_sha256),
  constraint upstream_sign_ins_browser_sha256_check CHECK ((length(browser_sha256) = 32)),
  constraint upstream_sign_ins_state_sha256_check CHECK ((length(state_sha256) = 32)),
  constraint upstream_sign_ins_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX upstream_sign_ins_expired ON public.upstream_sign_ins USING btree (expires_at);
alter table upstream_sign_ins enable row level security;
alter table upstream_sign_ins force row level security;
create policy tenant on upstream_sign_ins using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_connections (
  tenant_id uuid not null,
  id uuid not null,
  connector_id uuid not null,
  connector text not null,
  user_id uuid not null,
  subject text not null,
  requester_type text not null,
  requester_id text not null,
  agent_id uuid,
  status text not null,
  scopes text[] not null,
  reason text,
  return_to text,
  max_bytes bigint,
  grant_expires_at timestamp with time zone,
  account_label text,
  credential_id uuid,
  grant_id uuid,
  code text,
  code_expires_at timestamp with time zone,
  polled_at timestamp with time zone,
  state_sha256 bytea,
  session_id uuid,
  verifier_sealed bytea,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint vault_connections_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_connections_id_key UNIQUE (id),
  constraint vault_connections_requester_type_check CHECK ((requester_type = ANY (ARRAY['agent'::text, 'service'::text]))),
  constraint vault_connections_state_sha256_check CHECK ((length(state_sha256) = 32)),
  constraint vault_connections_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'needs_reauthorization'::text, 'denied'::text, 'expired'::text, 'revoked'::text]))),
  constraint vault_connections_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX vault_connections_code ON public.vault_connections USING btree (code) WHERE (code IS NOT NULL);
CREATE INDEX vault_connections_ended ON public.vault_connections USING btree (updated_at) WHERE (status = ANY (ARRAY['denied'::text, 'expired'::text, 'revoked'::text]));
CREATE INDEX vault_connections_listed ON public.vault_connections USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX vault_connections_of_connector ON public.vault_connections USING btree (tenant_id, connector_id);
CREATE INDEX vault_connections_of_credential ON public.vault_connections USING btree (tenant_id, credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX vault_connections_of_grant ON public.vault_connections USING btree (tenant_id, grant_id) WHERE (grant_id IS NOT NULL);
CREATE INDEX vault_connections_of_subject ON public.vault_connections USING btree (tenant_id, subject, agent_id);
CREATE INDEX vault_connections_open ON public.vault_connections USING btree (code_expires_at) WHERE (status = 'pending'::text);
CREATE UNIQUE INDEX vault_connections_state ON public.vault_connections USING btree (state_sha256) WHERE (state_sha256 IS NOT NULL);
alter table vault_connections enable row level security;
alter table vault_connections force row level security;
create policy tenant on vault_connections using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_connectors (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  template text,
  client_id text not null,
  client_secret_sealed bytea,
  client_secret_sealed_stamp bytea,
  authorization_endpoint text not null,
  token_endpoint text not null,
  revocation_endpoint text,
  issuer text,
  scopes text[] not null,
  allowed_hosts text[] not null,
  auth_scheme text not null,
  pkce boolean not null,
  token_endpoint_auth_method text not null,
  authorization_parameters jsonb not null,
  account_label jsonb,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  removed_at timestamp with time zone,
  constraint vault_connectors_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_connectors_id_key UNIQUE (id),
  constraint vault_connectors_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX vault_connectors_listed ON public.vault_connectors USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX vault_connectors_name ON public.vault_connectors USING btree (tenant_id, name);
CREATE INDEX vault_connectors_removed ON public.vault_connectors USING btree (removed_at) WHERE (removed_at IS NOT NULL);
alter table vault_connectors enable row level security;
alter table vault_connectors force row level security;
create policy tenant on vault_connectors using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_credentials (
  tenant_id uuid not null,
  id uuid not null,
  owner_type text not null,
  owner_id text not null,
  provider text not null,
  credential_type text not null,
  label text not null,
  auth_scheme text not null,
  allowed_hosts text[] not null,
  non_exportable boolean not null,
  status text default 'active'::text not null,
  metadata jsonb not null,
  secret bytea,
  ca_public_key text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  token_of uuid,
  secret_stamp bytea,
  lapsed_at timestamp with time zone,
  constraint vault_credentials_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_credentials_check CHECK (((token_of IS NULL) OR ((credential_type = ANY (ARRAY['api_key'::text, 'custom'::text])) AND non_exportable))),
  constraint vault_credentials_check1 CHECK (((status = 'revoked'::text) = (revoked_at IS NOT NULL))),
  constraint vault_credentials_check2 CHECK (((credential_type = 'ssh_ca'::text) = (ca_public_key IS NOT NULL))),
  constraint vault_credentials_credential_type_check CHECK ((credential_type = ANY (ARRAY['oauth2'::text, 'api_key'::text, 'ssh_key'::text, 'ssh_ca'::text, 'custom'::text]))),
  constraint vault_credentials_owner_type_check CHECK ((owner_type = ANY (ARRAY['human'::text, 'agent'::text, 'service'::text]))),
  constraint vault_credentials_secret CHECK ((((status = 'revoked'::text) OR (token_of IS NOT NULL)) = (secret IS NULL))),
  constraint vault_credentials_status_check CHECK ((status = ANY (ARRAY['active'::text, 'revoked'::text]))),
  constraint vault_credentials_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint vault_credentials_tenant_id_token_of_fkey FOREIGN KEY (tenant_id, token_of) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX vault_credentials_listed ON public.vault_credentials USING btree (tenant_id, created_at DESC, id DESC);
CREATE INDEX vault_credentials_ssh_ca ON public.vault_credentials USING btree (id) WHERE (ca_public_key IS NOT NULL);
CREATE INDEX vault_credentials_token_of ON public.vault_credentials USING btree (tenant_id, token_of) WHERE (token_of IS NOT NULL);
alter table vault_credentials enable row level security;
alter table vault_credentials force row level security;
create policy tenant on vault_credentials using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_grants (
  tenant_id uuid not null,
  id uuid not null,
  credential_id uuid,
  grantee_type text not null,
  grantee_id text not null,
  capabilities text[] not null,
  snapshot jsonb not null,
  methods text[],
  path_prefixes text[],
  max_requests bigint,
  max_bytes bigint,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  requests_used bigint default 0 not null,
  bytes_used bigint default 0 not null,
  allow_range boolean default true not null,
  spent_at timestamp with time zone,
  budget jsonb,
  budget_began timestamp with time zone,
  budget_requests bigint default 0 not null,
  budget_bytes bigint default 0 not null,
  budget_llm_tokens bigint default 0 not null,
  budget_spent timestamp with time zone,
  budget_told timestamp with time zone,
  approval text default 'none'::text not null,
  approved_at timestamp with time zone,
  approved_delegations text[] default '{}'::text[] not null,
  mcp_server_id uuid,
  tools text[],
  tool_rules jsonb,
  approved_tools text[] default '{}'::text[] not null,
  constraint vault_grants_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_grants_approval_check CHECK ((approval = ANY (ARRAY['none'::text, 'first'::text, 'each'::text]))),
  constraint vault_grants_bytes_within CHECK (((bytes_used >= 0) AND (bytes_used <= max_bytes))),
  constraint vault_grants_capabilities_check CHECK ((capabilities <@ ARRAY['list'::text, 'use'::text, 'sign'::text])),
  constraint vault_grants_grantee_type_check CHECK ((grantee_type = ANY (ARRAY['agent'::text, 'delegation'::text]))),
  constraint vault_grants_max_bytes_check CHECK ((max_bytes > 0)),
  constraint vault_grants_max_requests_check CHECK ((max_requests > 0)),
  constraint vault_grants_of_one CHECK (((credential_id IS NULL) = (mcp_server_id IS NOT NULL))) NOT VALID,
  constraint vault_grants_requests_within CHECK (((requests_used >= 0) AND (requests_used <= max_requests))),
  constraint vault_grants_mcp_server_fkey FOREIGN KEY (tenant_id, mcp_server_id) REFERENCES mcp_servers(tenant_id, id) ON DELETE CASCADE NOT VALID,
  constraint vault_grants_tenant_id_credential_id_fkey FOREIGN KEY (tenant_id, credential_id) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX vault_grants_listed ON public.vault_grants USING btree (tenant_id, credential_id, created_at DESC, id DESC);
CREATE INDEX vault_grants_of_grantee ON public.vault_grants USING btree (tenant_id, grantee_type, grantee_id) WHERE (revoked_at IS NULL);
CREATE INDEX vault_grants_of_server ON public.vault_grants USING btree (tenant_id, mcp_server_id, created_at DESC, id DESC) WHERE (mcp_server_id IS NOT NULL);
alter table vault_grants enable row level security;
alter table vault_grants force row level security;
create policy tenant on vault_grants using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_leases (
  tenant_id uuid not null,
  id uuid not null,
  credential_id uuid not null,
  recipient_id text not null,
  snapshot jsonb not null,
  byte_budget bigint not null,
  bytes_used bigint default 0 not null,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  spent_at timestamp with time zone,
  constraint vault_leases_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_leases_byte_budget_check CHECK ((byte_budget > 0)),
  constraint vault_leases_check CHECK (((bytes_used >= 0) AND (bytes_used <= byte_budget))),
  constraint vault_leases_tenant_id_credential_id_fkey FOREIGN KEY (tenant_id, credential_id) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX vault_leases_listed ON public.vault_leases USING btree (tenant_id, credential_id, created_at DESC, id DESC);
CREATE INDEX vault_leases_of_recipient ON public.vault_leases USING btree (tenant_id, recipient_id) WHERE (revoked_at IS NULL);
alter table vault_leases enable row level security;
alter table vault_leases force row level security;
create policy tenant on vault_leases using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_managed_tokens (
  tenant_id uuid not null,
  credential_id uuid not null,
  token bytea,
  obtained_at timestamp with time zone,
  expires_at timestamp with time zone,
  client_auth text,
  refresher uuid,
  refreshing_until timestamp with time zone,
  failure jsonb,
  retry_at timestamp with time zone,
  token_stamp bytea,
  answer bytea,
  answer_stamp bytea,
  kept_until timestamp with time zone,
  constraint vault_managed_tokens_pkey PRIMARY KEY (tenant_id, credential_id),
  constraint vault_managed_tokens_check CHECK (((token IS NULL) = (obtained_at IS NULL))),
  constraint vault_managed_tokens_check1 CHECK (((refresher IS NULL) = (refreshing_until IS NULL))),
  constraint vault_managed_tokens_check2 CHECK (((failure IS NULL) = (retry_at IS NULL))),
  constraint vault_managed_tokens_client_auth_check CHECK ((client_auth = ANY (ARRAY['basic'::text, 'post'::text]))),
  constraint vault_managed_tokens_tenant_id_credential_id_fkey FOREIGN KEY (tenant_id, credential_id) REFERENCES vault_credentials(tenant_id, id) ON DELETE CASCADE
);
alter table vault_managed_tokens enable row level security;
alter table vault_managed_tokens force row level security;
create policy tenant on vault_managed_tokens using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table vault_revocations (
  tenant_id uuid not null,
  id uuid not null,
  connector_id uuid not null,
  credential_id uuid not null,
  secret bytea not null,
  secret_stamp bytea,
  token bytea,
  token_stamp bytea,
  tries integer default 0 not null,
  due_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint vault_revocations_pkey PRIMARY KEY (tenant_id, id),
  constraint vault_revocations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX vault_revocations_due ON public.vault_revocations USING btree (due_at);
CREATE INDEX vault_revocations_of_connector ON public.vault_revocations USING btree (tenant_id, connector_id);
alter table vault_revocations enable row level security;
alter table vault_revocations force row level security;
create policy tenant on vault_revocations using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table verified_domains (
  tenant_id uuid not null,
  id uuid not null,
  domain text not null,
  proof text not null,
  sso_provider_id uuid,
  auto_join boolean not null,
  created_at timestamp with time zone not null,
  verified_at timestamp with time zone,
  constraint verified_domains_pkey PRIMARY KEY (tenant_id, id),
  constraint verified_domains_tenant_id_domain_key UNIQUE (tenant_id, domain),
  constraint verified_domains_domain_check CHECK ((domain = lower(domain))),
  constraint verified_domains_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE,
  constraint verified_domains_tenant_id_sso_provider_id_fkey FOREIGN KEY (tenant_id, sso_provider_id) REFERENCES sso_providers(tenant_id, id) ON DELETE SET NULL (sso_provider_id)
);
CREATE INDEX verified_domains_listed ON public.verified_domains USING btree (tenant_id, created_at DESC, id DESC);
alter table verified_domains enable row level security;
alter table verified_domains force row level security;
create policy tenant on verified_domains using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table waiting_events (
  tenant_id uuid not null,
  sequence bigint not null,
  occurred_at timestamp with time zone not null,
  constraint waiting_events_pkey PRIMARY KEY (tenant_id, sequence)
);
CREATE INDEX waiting_events_oldest ON public.waiting_events USING btree (occurred_at, tenant_id, sequence);
alter table waiting_events enable row level security;
alter table waiting_events force row level security;
create policy tenant on waiting_events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table wallet_budgets (
  tenant_id uuid not null,
  wallet_id uuid not null,
  network text not null,
  asset text not null,
  payment_max numeric(78,0) not null,
  window_max numeric(78,0) not null,
  window_secs integer not null,
  constraint wallet_budgets_pkey PRIMARY KEY (tenant_id, wallet_id, network, asset),
  constraint wallet_budgets_asset_check CHECK (((asset = 'native'::text) OR (asset ~ '^0x[0-9a-f]{40}$'::text))),
  constraint wallet_budgets_check CHECK ((window_max >= payment_max)),
  constraint wallet_budgets_payment_max_check CHECK ((payment_max > (0)::numeric)),
  constraint wallet_budgets_window_secs_check CHECK (((window_secs >= 60) AND (window_secs <= 31536000))),
  constraint wallet_budgets_tenant_id_wallet_id_fkey FOREIGN KEY (tenant_id, wallet_id) REFERENCES wallets(tenant_id, id) ON DELETE CASCADE
);
alter table wallet_budgets enable row level security;
alter table wallet_budgets force row level security;
create policy tenant on wallet_budgets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table wallet_signatures (
  tenant_id uuid not null,
  id uuid not null,
  wallet_id uuid not null,
  agent_id uuid not null,
  kind text not null,
  network text not null,
  contract text,
  recipient text not null,
  asset text not null,
  amount numeric(78,0) not null,
  fee_max numeric(78,0) not null,
  hash text not null,
  nonce text not null,
  valid_before timestamp with time zone,
  resource text,
  created_at timestamp with time zone not null,
  constraint wallet_signatures_pkey PRIMARY KEY (tenant_id, id),
  constraint wallet_signatures_amount_check CHECK ((amount >= (0)::numeric)),
  constraint wallet_signatures_fee_max_check CHECK ((fee_max >= (0)::numeric)),
  constraint wallet_signatures_kind_check CHECK ((kind = ANY (ARRAY['x402_payment'::text, 'transaction'::text]))),
  constraint wallet_signatures_tenant_id_wallet_id_fkey FOREIGN KEY (tenant_id, wallet_id) REFERENCES wallets(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX wallet_signatures_listed ON public.wallet_signatures USING btree (tenant_id, wallet_id, created_at DESC, id DESC);
alter table wallet_signatures enable row level security;
alter table wallet_signatures force row level security;
create policy tenant on wallet_signatures using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table wallet_spends (
  tenant_id uuid not null,
  signature_id uuid not null,
  wallet_id uuid not null,
  network text not null,
  asset text not null,
  amount numeric(78,0) not null,
  spent_at timestamp with time zone not null,
  constraint wallet_spends_pkey PRIMARY KEY (tenant_id, signature_id, asset),
  constraint wallet_spends_amount_check CHECK ((amount >= (0)::numeric)),
  constraint wallet_spends_tenant_id_signature_id_fkey FOREIGN KEY (tenant_id, signature_id) REFERENCES wallet_signatures(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX wallet_spends_age ON public.wallet_spends USING btree (spent_at);
CREATE INDEX wallet_spends_counted ON public.wallet_spends USING btree (tenant_id, wallet_id, network, asset, spent_at) INCLUDE (amount);
alter table wallet_spends enable row level security;
alter table wallet_spends force row level security;
create policy tenant on wallet_spends using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table wallets (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  address text not null,
  key_sealed bytea not null,
  status text default 'active'::text not null,
  recipients text[],
  contracts text[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  frozen_at timestamp with time zone,
  constraint wallets_pkey PRIMARY KEY (tenant_id, id),
  constraint wallets_tenant_id_agent_id_key UNIQUE (tenant_id, agent_id),
  constraint wallets_address_check CHECK ((address ~ '^0x[0-9a-fA-F]{40}$'::text)),
  constraint wallets_check CHECK (((status = 'frozen'::text) = (frozen_at IS NOT NULL))),
  constraint wallets_status_check CHECK ((status = ANY (ARRAY['active'::text, 'frozen'::text]))),
  constraint wallets_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX wallets_listed ON public.wallets USING btree (tenant_id, created_at DESC, id DESC);
alter table wallets enable row level security;
alter table wallets force row level security;
create policy tenant on wallets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table webhook_attempts (
  tenant_id uuid not null,
  delivery_id uuid not null,
  number integer not null,
  attempted_at timestamp with time zone not null,
  response_status integer,
  duration_ms integer not null,
  error text,
  constraint webhook_attempts_pkey PRIMARY KEY (tenant_id, delivery_id, number),
  constraint webhook_attempts_number_check CHECK ((number > 0)),
  constraint webhook_attempts_tenant_id_delivery_id_fkey FOREIGN KEY (tenant_id, delivery_id) REFERENCES webhook_deliveries(tenant_id, id) ON DELETE CASCADE
);
alter table webhook_attempts enable row level security;
alter table webhook_attempts force row level security;
create policy tenant on webhook_attempts using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table webhook_deliveries (
  tenant_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event_type text not null,
  body text not null,
  status text default 'pending'::text not null,
  attempt_count integer default 0 not null,
  max_attempts integer not null,
  attempts_before integer default 0 not null,
  response_status integer,
  error text,
  duration_ms integer,
  next_attempt_at timestamp with time zone,
  last_attempt_at timestamp with time zone,
  delivered_at timestamp with time zone,
  created_at timestamp with time zone not null,
  constraint webhook_deliveries_pkey PRIMARY KEY (tenant_id, id),
  constraint webhook_deliveries_tenant_id_webhook_id_event_id_key UNIQUE (tenant_id, webhook_id, event_id),
  constraint webhook_deliveries_max_attempts_check CHECK ((max_attempts > 0)),
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'retrying'::text, 'succeeded'::text, 'failed'::text]))),
  constraint webhook_deliveries_tenant_id_webhook_id_fkey FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_age ON public.webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_listed ON public.webhook_deliveries USING btree (tenant_id, webhook_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_waiting ON public.webhook_deliveries USING btree (webhook_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);
alter table webhook_deliveries enable row level security;
alter table webhook_deliveries force row level security;
create policy tenant on webhook_deliveries using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table webhook_lanes (
  tenant_id uuid not null,
  webhook_id uuid not null,
  due_at timestamp with time zone,
  held_until timestamp with time zone,
  failures integer default 0 not null,
  failing_since timestamp with time zone,
  lease uuid,
  leased_until timestamp with time zone,
  constraint webhook_lanes_pkey PRIMARY KEY (tenant_id, webhook_id),
  constraint webhook_lanes_tenant_id_webhook_id_fkey FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX webhook_lanes_due ON public.webhook_lanes USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX webhook_lanes_leased ON public.webhook_lanes USING btree (lease) WHERE (lease IS NOT NULL);
alter table webhook_lanes enable row level security;
alter table webhook_lanes force row level security;
create policy tenant on webhook_lanes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table webhooks (
  tenant_id uuid not null,
  id uuid not null,
  url text not null,
  event_types text[] not null,
  description text default ''::text not null,
  active boolean default true not null,
  secret bytea,
  previous_secret bytea,
  previous_secret_expires_at timestamp with time zone,
  secret_last_rotated_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  secret_hint integer,
  previous_secret_hint integer,
  secret_stamp bytea,
  previous_secret_stamp bytea,
  constraint webhooks_pkey PRIMARY KEY (tenant_id, id),
  constraint webhooks_id_key UNIQUE (id),
  constraint webhooks_check CHECK (((secret IS NULL) = (deleted_at IS NOT NULL))),
  constraint webhooks_check1 CHECK (((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))),
  constraint webhooks_event_types_check CHECK (((cardinality(event_types) >= 1) AND (cardinality(event_types) <= 100))),
  constraint webhooks_previous_secret_hint_check CHECK (((previous_secret_hint >= 0) AND (previous_secret_hint <= 65535))),
  constraint webhooks_secret_hint_check CHECK (((secret_hint >= 0) AND (secret_hint <= 65535))),
  constraint webhooks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE INDEX webhooks_deleted ON public.webhooks USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX webhooks_hinted ON public.webhooks USING btree (secret_hint) WHERE ((deleted_at IS NULL) AND active);
CREATE INDEX webhooks_hinted_before ON public.webhooks USING btree (previous_secret_hint) WHERE (previous_secret_hint IS NOT NULL);
CREATE INDEX webhooks_listed ON public.webhooks USING btree (tenant_id, created_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX webhooks_rotated ON public.webhooks USING btree (previous_secret_expires_at) WHERE (previous_secret_expires_at IS NOT NULL);
alter table webhooks enable row level security;
alter table webhooks force row level security;
create policy tenant on webhooks using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create table x402_payments (
  tenant_id uuid not null,
  id uuid not null,
  payment_link_id uuid,
  charge_id uuid not null,
  version smallint not null,
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  pay_to text not null,
  amount numeric(78,0) not null,
  valid_before numeric(78,0) not null,
  proof_sha256 bytea not null,
  payload_sha256 bytea not null,
  payment_identifier text,
  request jsonb not null,
  state text not null,
  lease uuid,
  leased_until timestamp with time zone,
  due_at timestamp with time zone,
  checks integer default 0 not null,
  transaction text,
  error_reason text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  checkout_session_id uuid,
  constraint x402_payments_pkey PRIMARY KEY (tenant_id, id),
  constraint x402_payments_check CHECK (((state = 'settled'::text) <= (transaction IS NOT NULL))),
  constraint x402_payments_check1 CHECK (((state = 'failed'::text) <= (error_reason IS NOT NULL))),
  constraint x402_payments_check2 CHECK (((state = ANY (ARRAY['settling'::text, 'unknown'::text])) = (due_at IS NOT NULL))),
  constraint x402_payments_check3 CHECK ((num_nonnulls(payment_link_id, checkout_session_id) = 1)),
  constraint x402_payments_payload_sha256_check CHECK ((length(payload_sha256) = 32)),
  constraint x402_payments_proof_sha256_check CHECK ((length(proof_sha256) = 32)),
  constraint x402_payments_state_check CHECK ((state = ANY (ARRAY['verifying'::text, 'settling'::text, 'unknown'::text, 'settled'::text, 'failed'::text]))),
  constraint x402_payments_version_check CHECK ((version = ANY (ARRAY[1, 2]))),
  constraint x402_payments_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX x402_payments_charge ON public.x402_payments USING btree (tenant_id, charge_id) WHERE (state = ANY (ARRAY['settling'::text, 'unknown'::text, 'settled'::text]));
CREATE INDEX x402_payments_due ON public.x402_payments USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE UNIQUE INDEX x402_payments_identified ON public.x402_payments USING btree (tenant_id, payment_identifier) WHERE (payment_identifier IS NOT NULL);
CREATE INDEX x402_payments_listed ON public.x402_payments USING btree (tenant_id, created_at DESC, id DESC);
CREATE UNIQUE INDEX x402_payments_once ON public.x402_payments USING btree (network, asset, payer, nonce);
CREATE INDEX x402_payments_proof ON public.x402_payments USING btree (tenant_id, proof_sha256);
CREATE INDEX x402_payments_verifying ON public.x402_payments USING btree (leased_until) WHERE (state = 'verifying'::text);
alter table x402_payments enable row level security;
alter table x402_payments force row level security;
create policy tenant on x402_payments using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

create view all_events with (security_invoker=true) as
 SELECT e.tenant_id,
    e.sequence,
    e.id,
    e.type,
    e.data,
    e.occurred_at
   FROM events e
  WHERE (NOT (EXISTS ( SELECT
           FROM event_sequences s
          WHERE ((s.tenant_id = e.tenant_id) AND (s.log_from <= e.sequence)))))
UNION ALL
 SELECT a.tenant_id,
    a.event_number AS sequence,
    a.id,
    a.type,
    svc_event_data(a.event_about, a.subject, a.resource, a.request_id, a.data) AS data,
    a.occurred_at
   FROM audit_events a
  WHERE (a.event_about IS NOT NULL);

CREATE TRIGGER access_policies_standing AFTER INSERT OR DELETE OR UPDATE ON public.access_policies FOR EACH ROW EXECUTE FUNCTION svc_announce_policies();
CREATE TRIGGER accounts_credentials AFTER UPDATE OF email_key, email_verified ON public.accounts FOR EACH ROW WHEN (((old.email_key <> new.email_key) OR (old.email_verified AND (NOT new.email_verified)))) EXECUTE FUNCTION svc_revoke_credentials_of_email();
CREATE TRIGGER accounts_tenant_users AFTER UPDATE OF status ON public.accounts FOR EACH ROW EXECUTE FUNCTION svc_tenant_users_follow();
CREATE TRIGGER agent_keys_standing AFTER INSERT OR DELETE OR UPDATE OF status ON public.agent_keys FOR EACH ROW EXECUTE FUNCTION svc_announce_agent();
CREATE TRIGGER agent_suspensions_standing AFTER INSERT OR DELETE ON public.agent_suspensions FOR EACH ROW EXECUTE FUNCTION svc_announce_agent();
CREATE TRIGGER agents_standing AFTER DELETE OR UPDATE OF status ON public.agents FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER api_keys_standing AFTER DELETE OR UPDATE OF token_sha256, previous_expires_at ON public.api_keys FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER api_resources_standing AFTER DELETE OR UPDATE ON public.api_resources FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER application_secrets_standing AFTER INSERT OR DELETE OR UPDATE ON public.application_secrets FOR EACH ROW EXECUTE FUNCTION svc_announce_secret();
CREATE TRIGGER applications_origins_added AFTER INSERT ON public.applications FOR EACH ROW WHEN (((new.allowed_origins <> '{}'::text[]) OR (new.redirect_uris <> '{}'::text[]))) EXECUTE FUNCTION svc_application_origins();
CREATE TRIGGER applications_origins_changed AFTER UPDATE OF allowed_origins, redirect_uris, loopback_any_port ON public.applications FOR EACH ROW WHEN (((old.allowed_origins <> new.allowed_origins) OR (old.redirect_uris <> new.redirect_uris) OR (old.loopback_any_port <> new.loopback_any_port))) EXECUTE FUNCTION svc_application_origins();
CREATE TRIGGER applications_standing AFTER DELETE OR UPDATE ON public.applications FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER audit_events_kept BEFORE DELETE OR UPDATE ON public.audit_events FOR EACH ROW EXECUTE FUNCTION svc_refuse_audit_change();
CREATE TRIGGER audit_events_never_emptied BEFORE TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION svc_refuse_audit_change();
CREATE TRIGGER billing_plans_tenants AFTER UPDATE OF features ON public.billing_plans FOR EACH ROW EXECUTE FUNCTION svc_plan_follows();
CREATE TRIGGER browser_sessions_confine BEFORE INSERT ON public.browser_sessions FOR EACH ROW WHEN (((new.provider IS NOT NULL) AND (NOT new.confined))) EXECUTE FUNCTION browser_sessions_confine();
CREATE TRIGGER delegations_standing AFTER UPDATE OF revoked_at ON public.delegations FOR EACH ROW WHEN (((new.revoked_at IS NOT NULL) AND (old.revoked_at IS NULL))) EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER event_sequences_sinks AFTER UPDATE OF last ON public.event_sequences FOR EACH ROW WHEN ((new.last > old.last)) EXECUTE FUNCTION svc_sinks_due();
CREATE CONSTRAINT TRIGGER ledger_entries_balanced AFTER INSERT ON public.ledger_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION svc_ledger_balanced();
CREATE TRIGGER ledger_entries_kept BEFORE DELETE OR UPDATE ON public.ledger_entries FOR EACH ROW EXECUTE FUNCTION svc_ledger_kept();
CREATE TRIGGER ledger_balance AFTER INSERT ON public.ledger_lines FOR EACH ROW EXECUTE FUNCTION svc_ledger_balance();
CREATE CONSTRAINT TRIGGER ledger_lines_balanced AFTER INSERT ON public.ledger_lines DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION svc_ledger_balanced();
CREATE TRIGGER ledger_lines_kept BEFORE DELETE OR UPDATE ON public.ledger_lines FOR EACH ROW EXECUTE FUNCTION svc_ledger_kept();
CREATE TRIGGER organizations_billing AFTER UPDATE OF billing_plan_id, billing_suspended_at ON public.organizations FOR EACH ROW EXECUTE FUNCTION svc_billing_follows();
CREATE TRIGGER organizations_standing AFTER UPDATE OF status ON public.organizations FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER organizations_tenants AFTER UPDATE OF status, support_contact ON public.organizations FOR EACH ROW EXECUTE FUNCTION svc_tenants_follow();
CREATE TRIGGER refresh_families_standing AFTER UPDATE OF revoked_at ON public.refresh_families FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER revoked_tokens_standing AFTER INSERT ON public.revoked_tokens FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER sessions_standing AFTER UPDATE OF ended_at ON public.sessions FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER announce AFTER INSERT OR DELETE OR UPDATE ON public.signing_keys FOR EACH STATEMENT EXECUTE FUNCTION svc_announce_signing_keys();
CREATE TRIGGER tenant_users_fixture_limit BEFORE INSERT OR UPDATE OF status, fixture ON public.tenant_users FOR EACH ROW WHEN ((new.fixture AND (new.status = 'active'::text))) EXECUTE FUNCTION svc_limit_fixtures();
CREATE TRIGGER tenant_users_inherit BEFORE INSERT ON public.tenant_users FOR EACH ROW EXECUTE FUNCTION svc_tenant_user_inherits();
CREATE TRIGGER tenant_users_standing AFTER DELETE OR UPDATE OF status, account_active ON public.tenant_users FOR EACH ROW EXECUTE FUNCTION svc_announce_person();
CREATE TRIGGER tenants_announced AFTER INSERT OR DELETE OR UPDATE ON public.tenants FOR EACH ROW EXECUTE FUNCTION svc_announce_tenant();
CREATE TRIGGER tenants_billing BEFORE INSERT OR UPDATE OF organization_id ON public.tenants FOR EACH ROW EXECUTE FUNCTION svc_tenant_billing();
CREATE TRIGGER tenants_inherit BEFORE INSERT OR UPDATE OF suspended_at, support_contact ON public.tenants FOR EACH ROW EXECUTE FUNCTION svc_tenant_inherits();
CREATE TRIGGER tenants_standing AFTER DELETE OR UPDATE OF status, suspended_at ON public.tenants FOR EACH ROW EXECUTE FUNCTION svc_announce_standing();
CREATE TRIGGER vault_credentials_announced AFTER DELETE OR UPDATE OF status, secret, allowed_hosts ON public.vault_credentials FOR EACH ROW EXECUTE FUNCTION svc_announce_egress();
CREATE TRIGGER vault_grants_announced AFTER INSERT OR DELETE OR UPDATE OF revoked_at ON public.vault_grants FOR EACH ROW EXECUTE FUNCTION svc_announce_egress();
CREATE TRIGGER vault_leases_announced AFTER INSERT OR DELETE OR UPDATE OF revoked_at ON public.vault_leases FOR EACH ROW EXECUTE FUNCTION svc_announce_egress();
