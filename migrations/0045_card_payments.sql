-- Old processes may keep running: only adds tables.

-- How the card provider names the payment of a charge. A payment moves money only after its row is written.
create table card_payments (
  tenant_id uuid not null,
  charge_id uuid not null,
  -- Calls that the provider answered with a server error, which it keeps under their idempotency key; the
  -- next one gets another key.
  failed_calls integer not null default 0,
  -- The provider's page, where a buyer pays.
  checkout_id text,
  -- The payment itself.
  payment_id text,
  -- Refused for good before the provider had named a payment: none is to be written here any more.
  abandoned boolean not null default false,
  -- When it was last looked up for a buyer who waits at our page.
  looked_up_at timestamptz,
  -- How often it was looked up without an outcome.
  look_ups integer not null default 0,
  created_at timestamptz not null,
  primary key (tenant_id, charge_id),
  -- The provider's webhooks name a payment and no tenant.
  unique (checkout_id),
  unique (payment_id),
  check (not abandoned or (checkout_id is null and payment_id is null)),
  foreign key (tenant_id, charge_id) references charges (tenant_id, id) on delete cascade
);

alter table card_payments enable row level security;
alter table card_payments force row level security;
create policy tenant on card_payments using (svc_visible(tenant_id))
  with check (svc_visible(tenant_id));

-- Webhooks of the card provider, each once. It sends one account's events for all tenants.
create table card_events (
  id text primary key,
  type text not null,
  about text not null check (about in ('payment', 'dispute', 'refund')),
  object_id text not null,
  payment_id text,
  received_at timestamptz not null,
  -- When a worker has to act on it; null when nothing is left to do.
  due_at timestamptz
);
create index card_events_due on card_events (due_at) where due_at is not null;
create index card_events_received on card_events (received_at);
