-- Old processes may keep running: only adds tables.

-- Who wants to hear of what (interface.md, Webhook subscription).
create table webhooks (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  url text not null,
  -- Names of the catalogue, `prefix.*` or `*`.
  event_types text[] not null check (cardinality(event_types) between 1 and 100),
  description text not null default '',
  active boolean not null default true,
  -- Sealed under the tenant's data key; wiped when the subscription is deleted.
  secret bytea,
  -- Signs beside the new one until then, where the receiver's format has room for two.
  previous_secret bytea,
  previous_secret_expires_at timestamptz,
  secret_last_rotated_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- A deleted subscription stays as long as its history does.
  deleted_at timestamptz,
  primary key (tenant_id, id),
  unique (id),
  check ((secret is null) = (deleted_at is not null)),
  check ((previous_secret is null) = (previous_secret_expires_at is null))
);
create index webhooks_listed on webhooks (tenant_id, created_at desc, id desc)
  where deleted_at is null;
create index webhooks_deleted on webhooks (deleted_at) where deleted_at is not null;

-- One event for one subscription. Its id is what the receiver deduplicates by.
create table webhook_deliveries (
  tenant_id uuid not null,
  id uuid not null,
  webhook_id uuid not null,
  event_id uuid not null,
  event_type text not null,
  -- What is sent, byte for byte: each attempt signs it anew and none writes it anew.
  body text not null,
  status text not null default 'pending'
    check (status in ('pending', 'retrying', 'succeeded', 'failed')),
  attempt_count integer not null default 0,
  max_attempts integer not null check (max_attempts > 0),
  -- The attempts before a replay: its ladder starts from the first rung.
  attempts_before integer not null default 0,
  response_status integer,
  error text,
  duration_ms integer,
  -- null: nothing more will be sent by the worker.
  next_attempt_at timestamptz,
  last_attempt_at timestamptz,
  delivered_at timestamptz,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, webhook_id, event_id),
  foreign key (tenant_id, webhook_id) references webhooks (tenant_id, id) on delete cascade
);
create index webhook_deliveries_waiting on webhook_deliveries (webhook_id, next_attempt_at)
  where next_attempt_at is not null;
create index webhook_deliveries_listed
  on webhook_deliveries (tenant_id, webhook_id, created_at desc, id desc);
create index webhook_deliveries_age on webhook_deliveries (created_at);

create table webhook_attempts (
  tenant_id uuid not null,
  delivery_id uuid not null,
  number integer not null check (number > 0),
  attempted_at timestamptz not null,
  response_status integer,
  duration_ms integer not null,
  error text,
  primary key (tenant_id, delivery_id, number),
  foreign key (tenant_id, delivery_id) references webhook_deliveries (tenant_id, id)
    on delete cascade
);

-- One row per subscription: when it has something to send, and who is sending. A worker leases
-- lanes and not deliveries, so that the bounds of a receiver hold across all processes, and a
-- receiver with a long queue costs the others nothing.
create table webhook_lanes (
  tenant_id uuid not null,
  webhook_id uuid not null,
  -- Not after the first waiting delivery; null when none waits.
  due_at timestamptz,
  -- The receiver is given a rest until then.
  held_until timestamptz,
  -- Attempts in a row that found nobody.
  failures integer not null default 0,
  -- The first failure since the last success.
  failing_since timestamptz,
  lease uuid,
  leased_until timestamptz,
  primary key (tenant_id, webhook_id),
  foreign key (tenant_id, webhook_id) references webhooks (tenant_id, id) on delete cascade
) with (fillfactor = 50);
create index webhook_lanes_due on webhook_lanes (due_at) where due_at is not null;

do $$
declare
  protected text;
begin
  foreach protected in array
    array['webhooks', 'webhook_deliveries', 'webhook_attempts', 'webhook_lanes']
  loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
