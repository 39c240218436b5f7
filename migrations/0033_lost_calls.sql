-- Old processes may keep running: only adds tables, which they do not know, and an index; what appends
-- events waits while it is built. What they admit has ids by which nothing is looked for.

-- How long a call through egress may run, as each process that relays some says it every minute.
create table egress_call_limits (
  hop_timeout_secs integer primary key check (hop_timeout_secs > 0),
  said_at timestamptz not null
);

-- Calls whose beginning was dispatched until then have ended, and their ends are told.
create table egress_settlement (
  only_one boolean primary key default true check (only_one),
  settled_until timestamptz not null
);
insert into egress_settlement (settled_until) values (now());

-- Beginnings of calls, among all events: those of a stretch of time are read, and nothing else.
create index events_calls_begun on events (dispatched_at)
  where type = 'vault.credential.accessed' and dispatched_at is not null;
