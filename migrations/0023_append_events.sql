-- Old processes may keep running: only adds a function, which writes what the older statements write.

-- Events into the outbox and into the audit chain, in one go. Each list holds one line per event, in
-- the same order; `canonicals` are what is hashed (0007_control). Answers how many of them a
-- subscription may be waiting for.
--
-- The sequences are taken in the order of the tenants, so that two transactions which write for the
-- same two tenants cannot wait for each other. What no subscription of its tenant can be waiting for
-- is dispatched as it is written: most tenants listen to nothing.
create function svc_append_events(tenant_ids uuid[], ids uuid[], types text[], bodies text,
  occurred timestamptz[], canonicals text) returns bigint language plpgsql as $$
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
$$;
