-- Old processes may keep running: only adds tables.

-- Streams of security events to receivers (OpenID Shared Signals Framework 1.0 section 8.1).
create table signal_streams (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- The client id of the receiver: `aud` of its events.
  receiver text not null,
  -- Null: the receiver is an agent.
  application_id uuid,
  -- Null: the receiver polls.
  endpoint_url text,
  -- The Authorization header of pushes.
  authorization_sealed bytea,
  -- Null: all.
  events_requested text[],
  description text,
  status text not null default 'enabled' check (status in ('enabled', 'paused', 'disabled')),
  reason text,
  status_since timestamptz not null,
  -- The record of the audit log up to which events are in the stream.
  read_to bigint not null,
  -- When the receiver last asked for a verification event.
  verified_at timestamptz,
  -- When the next push is due. Null: none.
  due_at timestamptz,
  -- Failed pushes of the first event.
  attempts integer not null default 0,
  lease uuid,
  leased_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, application_id) references applications (tenant_id, id) on delete cascade
);
create index signal_streams_of_receiver on signal_streams (tenant_id, receiver, created_at);
create index signal_streams_of_application on signal_streams (tenant_id, application_id);
create index signal_streams_due on signal_streams (due_at) where due_at is not null;

-- Events that a receiver has not acknowledged.
create table signal_events (
  tenant_id uuid not null,
  stream_id uuid not null,
  -- The `jti`.
  id uuid not null,
  place bigint generated always as identity,
  txn text,
  type text not null,
  -- The `sub_id`.
  subject jsonb not null,
  event jsonb not null,
  issued_at timestamptz not null,
  primary key (tenant_id, stream_id, id),
  foreign key (tenant_id, stream_id) references signal_streams (tenant_id, id) on delete cascade
);
create index signal_events_in_order on signal_events (tenant_id, stream_id, place);

-- Subjects that a receiver took out of a stream. An empty text matches all.
create table signal_removed_subjects (
  tenant_id uuid not null,
  stream_id uuid not null,
  -- The `sub` of a user, or the id of an agent.
  principal text not null,
  session text not null,
  created_at timestamptz not null,
  primary key (tenant_id, stream_id, principal, session),
  foreign key (tenant_id, stream_id) references signal_streams (tenant_id, id) on delete cascade
);

alter table signal_streams enable row level security;
alter table signal_streams force row level security;
create policy tenant on signal_streams using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
alter table signal_events enable row level security;
alter table signal_events force row level security;
create policy tenant on signal_events using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
alter table signal_removed_subjects enable row level security;
alter table signal_removed_subjects force row level security;
create policy tenant on signal_removed_subjects using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
