-- Old processes may keep running: only adds a table.

-- Data keys that were made to replace another: what was sealed before is sealed anew, a batch at a
-- time, by whoever holds the lease.
create table data_key_rotations (
  tenant_id uuid not null,
  version integer not null,
  started_at timestamptz not null,
  -- Values that were sealed anew.
  resealed bigint not null default 0,
  -- Values that did not open: they stay as they are, and so does the key that may open them.
  unopened bigint not null default 0,
  worker uuid,
  working_until timestamptz,
  -- Nothing is left under an older key.
  finished_at timestamptz,
  primary key (tenant_id, version),
  foreign key (tenant_id, version) references data_keys (tenant_id, version) on delete cascade,
  check ((worker is null) = (working_until is null))
);
create index data_key_rotations_open on data_key_rotations (started_at) where finished_at is null;

alter table data_key_rotations enable row level security;
alter table data_key_rotations force row level security;
create policy tenant on data_key_rotations
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
