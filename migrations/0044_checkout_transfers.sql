-- Old processes may keep running: only adds tables, and widens a constraint.

-- Transfers of tokens that pay a checkout without a proof: a wallet sends an amount to an address.
-- The amount is one that no other checkout awaits at that address, so that it names the checkout.
-- awaited -> arrived -> booked or surplus; awaited -> void.
create table checkout_transfers (
  tenant_id uuid not null,
  id uuid not null,
  checkout_session_id uuid not null,
  charge_id uuid not null,
  -- Lower case.
  network text not null,
  asset text not null,
  pay_to text not null,
  -- Atomic units of the asset.
  amount numeric(78) not null,
  state text not null default 'awaited'
    check (state in ('awaited', 'arrived', 'booked', 'surplus', 'void')),
  payer text,
  transaction text,
  log_index integer,
  -- The amount is kept for this checkout until then, so that a late transfer pays no other one.
  watched_until timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, checkout_session_id)
    references checkout_sessions (tenant_id, id) on delete cascade,
  check ((state in ('arrived', 'booked', 'surplus')) = (transaction is not null)),
  check ((transaction is null) = (log_index is null)),
  check ((transaction is null) = (payer is null))
);
-- Across tenants: the same address may be the payee of two.
create unique index checkout_transfers_awaited
  on checkout_transfers (network, asset, pay_to, amount) where state = 'awaited';
create unique index checkout_transfers_once
  on checkout_transfers (network, transaction, log_index) where transaction is not null;
create index checkout_transfers_of_session on checkout_transfers (tenant_id, checkout_session_id);
create index checkout_transfers_arrived on checkout_transfers (updated_at) where state = 'arrived';
create index checkout_transfers_watched on checkout_transfers (watched_until) where state = 'awaited';

alter table checkout_transfers enable row level security;
alter table checkout_transfers force row level security;
create policy tenant on checkout_transfers
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Up to which block the transfers of a chain were looked at.
create table chain_cursors (
  network text primary key,
  block bigint not null,
  updated_at timestamptz not null
);

-- Nobody consents to be charged again by x402: its renewals are invoices, and there is no mandate.
alter table subscriptions
  drop constraint subscriptions_check,
  add constraint subscriptions_check check (status not in ('active', 'past_due')
    or (rail is not null and (mandate is not null or rail = 'x402') and anchor_at is not null
      and current_period_end is not null));
