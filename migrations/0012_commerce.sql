-- Old processes may keep running: only adds tables.

-- What is sold (decisions.md sections 10, 17, 22). Money is a whole number of minor units of an
-- ISO 4217 currency everywhere.
create table products (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  active boolean not null default true,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);
create index products_listed on products (tenant_id, created_at desc, id desc);

create table prices (
  tenant_id uuid not null,
  id uuid not null,
  product_id uuid not null,
  amount_minor bigint not null check (amount_minor between 1 and 999999999999),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  -- Both or neither: a price is paid once, or again and again.
  recurring_interval text check (recurring_interval in ('day', 'week', 'month', 'year')),
  recurring_interval_count integer check (recurring_interval_count between 1 and 365),
  active boolean not null default true,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  -- Buyers name a price and no tenant.
  unique (id),
  foreign key (tenant_id, product_id) references products (tenant_id, id) on delete cascade,
  check ((recurring_interval is null) = (recurring_interval_count is null))
);
create index prices_listed on prices (tenant_id, created_at desc, id desc);

create table payment_links (
  tenant_id uuid not null,
  id uuid not null,
  -- In the clear: merchants publish it, and have it listed.
  token text not null check (length(token) >= 22),
  price_id uuid not null,
  quantity integer not null check (quantity between 1 and 999),
  metadata jsonb not null,
  -- {network, asset, pay_to} where the link is payable by x402 on terms of its own.
  x402 jsonb,
  active boolean not null default true,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (token),
  foreign key (tenant_id, price_id) references prices (tenant_id, id) on delete cascade
);
create index payment_links_listed on payment_links (tenant_id, created_at desc, id desc);

-- What is paid again and again.
create table subscriptions (
  tenant_id uuid not null,
  id uuid not null,
  product_id uuid not null,
  price_id uuid not null,
  amount_minor bigint not null check (amount_minor between 1 and 999999999999),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  recurring_interval text not null check (recurring_interval in ('day', 'week', 'month', 'year')),
  recurring_interval_count integer not null check (recurring_interval_count between 1 and 365),
  customer_email text not null,
  buyer_country text,
  buyer_region text,
  metadata jsonb not null,
  -- incomplete: its first payment has not succeeded.
  status text not null check (status in ('incomplete', 'active', 'past_due', 'canceled')),
  -- Who is asked for the renewals, and how that rail names the buyer's consent.
  rail text,
  mandate text,
  -- The first period is 1. Period n begins n - 1 intervals after the anchor.
  period integer not null default 0,
  anchor_at timestamptz,
  current_period_start timestamptz,
  current_period_end timestamptz,
  -- Attempts to be paid for the next period.
  attempts integer not null default 0,
  cancel_at_period_end boolean not null default false,
  canceled_at timestamptz,
  -- When a worker has to look at it: the next renewal, or the end of the lease of who does it.
  due_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, price_id) references prices (tenant_id, id) on delete cascade,
  check (status not in ('active', 'past_due') or (rail is not null and mandate is not null
    and anchor_at is not null and current_period_end is not null)),
  check (status in ('active', 'past_due') or due_at is null)
);
create index subscriptions_listed on subscriptions (tenant_id, created_at desc, id desc);
create index subscriptions_due on subscriptions (due_at) where due_at is not null;

create table charges (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- pending -> succeeded or failed; succeeded -> refunded, also in part.
  status text not null default 'pending'
    check (status in ('pending', 'succeeded', 'failed', 'refunded')),
  -- Null until somebody has begun to pay.
  rail text,
  -- How the rail names the payment.
  rail_reference text,
  amount_minor bigint not null check (amount_minor between 1 and 999999999999),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  refunded_amount_minor bigint not null default 0 check (refunded_amount_minor >= 0),
  -- Refunds that the rail has been asked for and has not answered.
  refunding_amount_minor bigint not null default 0 check (refunding_amount_minor >= 0),
  -- Taken back by a dispute that was lost.
  reversed_amount_minor bigint not null default 0 check (reversed_amount_minor >= 0),
  failure_code text,
  metadata jsonb not null,
  product_id uuid,
  price_id uuid,
  quantity integer not null default 1 check (quantity between 1 and 999),
  buyer_id text,
  customer_email text,
  buyer_country text,
  buyer_region text,
  checkout_session_id uuid,
  payment_link_id uuid,
  subscription_id uuid,
  -- Which period of the subscription it pays for.
  subscription_period integer,
  paid_at timestamptz,
  -- When a worker has to ask the rail what became of it.
  due_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  check (refunded_amount_minor + refunding_amount_minor + reversed_amount_minor <= amount_minor),
  check (status in ('succeeded', 'refunded')
    or refunded_amount_minor + refunding_amount_minor + reversed_amount_minor = 0),
  check ((status = 'refunded') = (refunded_amount_minor > 0)),
  check ((status in ('succeeded', 'refunded')) = (paid_at is not null)),
  check (status <> 'failed' or failure_code is not null),
  check (status = 'pending' or due_at is null),
  check (status in ('pending', 'failed') or rail is not null),
  check ((subscription_id is null) = (subscription_period is null)),
  foreign key (tenant_id, subscription_id) references subscriptions (tenant_id, id)
);
create index charges_listed on charges (tenant_id, created_at desc, id desc);
create index charges_due on charges (due_at) where due_at is not null;
-- One payment of the same rail is one charge.
create unique index charges_by_reference on charges (tenant_id, rail, rail_reference)
  where rail_reference is not null;
-- A period of a subscription is paid for once, whoever tries and however often.
create unique index charges_of_period on charges (tenant_id, subscription_id, subscription_period)
  where subscription_id is not null and status <> 'failed';

create table checkout_sessions (
  tenant_id uuid not null,
  id uuid not null,
  token_sha256 bytea not null check (length(token_sha256) = 32),
  charge_id uuid not null,
  -- open -> paying -> completed; open -> expired, canceled.
  status text not null default 'open'
    check (status in ('open', 'paying', 'completed', 'expired', 'canceled')),
  success_url text,
  cancel_url text,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (token_sha256),
  foreign key (tenant_id, charge_id) references charges (tenant_id, id) on delete cascade
);
create unique index checkout_sessions_charge on checkout_sessions (tenant_id, charge_id);
create index checkout_sessions_expiry on checkout_sessions (expires_at) where status = 'open';

create table refunds (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  amount_minor bigint not null check (amount_minor > 0),
  reason text,
  status text not null default 'pending' check (status in ('pending', 'succeeded', 'failed')),
  failure_code text,
  due_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, charge_id) references charges (tenant_id, id) on delete cascade,
  check ((status = 'pending') = (due_at is not null))
);
create index refunds_due on refunds (due_at) where due_at is not null;
create index refunds_of_charge on refunds (tenant_id, charge_id);

-- The way of a charge's money to its merchant: created -> held <-> released.
create table settlements (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  rail text not null,
  -- What is left of it after refunds and disputes.
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'created' check (status in ('created', 'held', 'released')),
  hold_reason text check (hold_reason in ('clearing', 'dispute')),
  -- When a worker moves it on; null where nothing but a dispute can.
  due_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, charge_id),
  foreign key (tenant_id, charge_id) references charges (tenant_id, id) on delete cascade,
  check ((status = 'held') = (hold_reason is not null))
);
create index settlements_listed on settlements (tenant_id, created_at desc, id desc);
create index settlements_due on settlements (due_at) where due_at is not null;

create table disputes (
  tenant_id uuid not null,
  id uuid not null,
  charge_id uuid not null,
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  reason text not null,
  status text not null default 'opened' check (status in ('opened', 'closed')),
  outcome text check (outcome in ('won', 'lost')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  -- A charge is disputed once.
  unique (tenant_id, charge_id),
  foreign key (tenant_id, charge_id) references charges (tenant_id, id) on delete cascade,
  check ((status = 'closed') = (outcome is not null))
);
create index disputes_listed on disputes (tenant_id, created_at desc, id desc);

create table payouts (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  rail text not null,
  amount_minor bigint not null check (amount_minor > 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'submitted' check (status in ('submitted', 'paid', 'failed')),
  failure_code text,
  due_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  check ((status = 'submitted') = (due_at is not null)),
  check ((status = 'failed') = (failure_code is not null))
);
create index payouts_listed on payouts (tenant_id, created_at desc, id desc);
create index payouts_due on payouts (due_at) where due_at is not null;

-- The ledger: per tenant and currency, entries in the order of their commits, without gaps.
create table ledger_books (
  tenant_id uuid not null references tenants (id) on delete cascade,
  currency text not null,
  -- The last number given. Its row lock is held to the commit.
  last_sequence bigint not null,
  primary key (tenant_id, currency)
);

create table ledger_entries (
  tenant_id uuid not null,
  currency text not null,
  sequence bigint not null,
  id uuid not null,
  -- What happened: charge, refund, settlement, dispute, payout.
  kind text not null,
  subject_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, currency, sequence),
  unique (tenant_id, id)
);
-- One happening is booked once: its kind names the step.
create unique index ledger_entries_once on ledger_entries (tenant_id, kind, subject_id)
  where kind not like 'settlement.%';

-- Debits are positive, credits negative.
create table ledger_lines (
  tenant_id uuid not null,
  entry_id uuid not null,
  number integer not null,
  currency text not null,
  rail text not null,
  account text not null
    check (account in ('clearing', 'pending', 'held', 'available', 'in_transit')),
  amount_minor bigint not null check (amount_minor <> 0),
  primary key (tenant_id, entry_id, number),
  foreign key (tenant_id, entry_id) references ledger_entries (tenant_id, id)
);

create table ledger_accounts (
  tenant_id uuid not null,
  currency text not null,
  rail text not null,
  account text not null,
  -- Within what every program can count exactly.
  balance_minor bigint not null
    check (balance_minor between -9007199254740991 and 9007199254740991),
  primary key (tenant_id, currency, rail, account)
);

create function svc_ledger_balance() returns trigger language plpgsql as $$
begin
  insert into ledger_accounts as a (tenant_id, currency, rail, account, balance_minor)
    values (new.tenant_id, new.currency, new.rail, new.account, new.amount_minor)
    on conflict (tenant_id, currency, rail, account)
    do update set balance_minor = a.balance_minor + excluded.balance_minor;
  return null;
end
$$;
create trigger ledger_balance after insert on ledger_lines
  for each row execute function svc_ledger_balance();

-- Judged at the commit, whoever wrote it and how: two lines at least, of one currency, that add up
-- to nothing.
create function svc_ledger_balanced() returns trigger language plpgsql as $$
declare
  entry uuid;
  lines bigint;
  total numeric;
  strange bigint;
begin
  entry := case when tg_table_name = 'ledger_lines' then (to_jsonb(new) ->> 'entry_id')::uuid
                else (to_jsonb(new) ->> 'id')::uuid end;
  select count(*), coalesce(sum(l.amount_minor), 0), count(*) filter (where l.currency <> e.currency)
    into lines, total, strange
    from ledger_lines l join ledger_entries e on e.tenant_id = l.tenant_id and e.id = l.entry_id
    where l.tenant_id = new.tenant_id and l.entry_id = entry;
  if lines < 2 or total <> 0 or strange > 0 then
    raise exception 'ledger entry % does not balance', entry
      using errcode = 'check_violation', constraint = 'ledger_balanced';
  end if;
  return null;
end
$$;
create constraint trigger ledger_lines_balanced after insert on ledger_lines
  deferrable initially deferred for each row execute function svc_ledger_balanced();
create constraint trigger ledger_entries_balanced after insert on ledger_entries
  deferrable initially deferred for each row execute function svc_ledger_balanced();

-- What was booked stays booked; a mistake is corrected by another entry.
create function svc_ledger_kept() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is only added to' using errcode = 'check_violation',
    constraint = 'ledger_kept';
end
$$;
create trigger ledger_entries_kept before update or delete on ledger_entries
  for each row execute function svc_ledger_kept();
create trigger ledger_lines_kept before update or delete on ledger_lines
  for each row execute function svc_ledger_kept();

-- A statement tells of every entry since the one before it, and of no other.
create table statements (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  currency text not null,
  first_sequence bigint not null,
  last_sequence bigint not null,
  opening_balance_minor bigint not null,
  closing_balance_minor bigint not null,
  -- By kind of entry: {count, amount_minor}.
  totals jsonb not null,
  period_start timestamptz not null,
  period_end timestamptz not null,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, currency, first_sequence),
  check (last_sequence >= first_sequence)
);
create index statements_listed on statements (tenant_id, created_at desc, id desc);

-- The books of the sandbox rail: what a card processor would keep on its side. Its answers are
-- repeated, never thought over again.
create table sandbox_payments (
  tenant_id uuid not null references tenants (id) on delete cascade,
  -- Of the charge, refund or payout that it is about.
  id uuid not null,
  kind text not null check (kind in ('charge', 'refund', 'payout')),
  amount_minor bigint not null,
  currency text not null,
  -- succeeded, or why not.
  outcome text not null,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);
create table sandbox_mandates (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- What becomes of the next payments under it.
  outcome text not null check (outcome in ('succeed', 'decline')),
  created_at timestamptz not null,
  primary key (tenant_id, id)
);

do $$
declare
  protected text;
begin
  foreach protected in array
    array['products', 'prices', 'payment_links', 'subscriptions', 'charges', 'checkout_sessions',
      'refunds', 'settlements', 'disputes', 'payouts', 'ledger_books', 'ledger_entries',
      'ledger_lines', 'ledger_accounts', 'statements', 'sandbox_payments', 'sandbox_mandates']
  loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
