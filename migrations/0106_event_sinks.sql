-- Old processes may keep running: a trigger records what they number.

-- Event sinks: numbered events are sent to a message broker of the operator (docs/guides/operations/event-sinks.md).

-- The configured sinks. No tenant owns them.
create table event_sinks (
  name text primary key,
  created_at timestamptz not null,
  -- When a process had the sink in its configuration. A sink that none has for a week is forgotten.
  seen_at timestamptz not null
);

-- Where each sink is in the events of each tenant.
create table event_sink_cursors (
  tenant_id uuid not null,
  sink text not null references event_sinks (name) on delete cascade,
  -- The last event that the sink has confirmed.
  sequence bigint not null,
  -- The last event that has a number.
  due bigint not null,
  -- The time of the first event that waits. Null while none does.
  due_since timestamptz,
  lease uuid,
  leased_until timestamptz,
  primary key (tenant_id, sink)
);
create index event_sink_cursors_due on event_sink_cursors (sink, due_since) where due > sequence;
create index event_sink_cursors_of_sink on event_sink_cursors (sink);
alter table event_sink_cursors enable row level security;
alter table event_sink_cursors force row level security;
create policy tenant on event_sink_cursors
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Part of the transaction that numbers events, in processes of the release before too.
create function svc_sinks_due() returns trigger language plpgsql as $$
begin
  insert into event_sink_cursors as c (tenant_id, sink, sequence, due, due_since)
  select new.tenant_id, s.name, old.last, new.last, statement_timestamp() from event_sinks s
  on conflict (tenant_id, sink) do update
    set due = excluded.due, due_since = coalesce(c.due_since, excluded.due_since);
  return null;
end
$$;
create trigger event_sequences_sinks after update of last on event_sequences
  for each row when (new.last > old.last) execute function svc_sinks_due();
