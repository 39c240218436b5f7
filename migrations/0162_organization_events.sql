-- Old processes may keep running: only adds a counter and a table. Events that they write are not in the table.

-- The number of the latest event of the organization.
alter table organizations add column last_event bigint not null default 0;

-- The events of organizations, for their owners. Each tenant of the organization has a copy with the same id in its feed.
create table organization_events (
  organization_id uuid not null references organizations (id) on delete cascade,
  sequence bigint not null check (sequence > 0),
  id uuid not null,
  type text not null,
  data jsonb not null,
  occurred_at timestamptz not null,
  primary key (organization_id, sequence)
);
-- A new tenant begins its feed with it.
create unique index organization_events_created on organization_events (organization_id) where type = 'org.created';
alter table organization_events enable row level security;
alter table organization_events force row level security;
create policy tenant on organization_events
  using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
