-- Old processes may keep running: only adds a table.

-- Payments by x402 from the moment their signature is known to be good (decisions.md 11, 18, 22):
-- verifying -> settling -> settled or failed; settling -> unknown -> settled or failed. A payment
-- whose verification came to nothing leaves no row.
create table x402_payments (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  payment_link_id uuid not null,
  -- Pending from the moment the facilitator is asked to settle.
  charge_id uuid not null,
  version smallint not null check (version in (1, 2)),
  -- The authorization, lower case: its nonce can be spent once on its chain, and here.
  network text not null,
  asset text not null,
  payer text not null,
  nonce text not null,
  pay_to text not null,
  amount numeric(78) not null,
  valid_before numeric(78) not null,
  -- The same payment, and the very same message.
  proof_sha256 bytea not null check (length(proof_sha256) = 32),
  payload_sha256 bytea not null check (length(payload_sha256) = 32),
  -- The client's key of the payment-identifier extension.
  payment_identifier text,
  -- What the facilitator is asked.
  request jsonb not null,
  state text not null check (state in ('verifying', 'settling', 'unknown', 'settled', 'failed')),
  -- Who works on it, and until when nobody else does.
  lease uuid,
  leased_until timestamptz,
  -- When a worker has to find out what became of it.
  due_at timestamptz,
  checks integer not null default 0,
  transaction text,
  error_reason text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  check ((state = 'settled') <= (transaction is not null)),
  check ((state = 'failed') <= (error_reason is not null)),
  check ((state in ('settling', 'unknown')) = (due_at is not null))
);
-- Across tenants: one authorization pays once, whichever link it is shown to.
create unique index x402_payments_once on x402_payments (network, asset, payer, nonce);
create unique index x402_payments_identified on x402_payments (tenant_id, payment_identifier)
  where payment_identifier is not null;
create index x402_payments_proof on x402_payments (tenant_id, proof_sha256);
create unique index x402_payments_charge on x402_payments (tenant_id, charge_id);
create index x402_payments_due on x402_payments (due_at) where due_at is not null;
create index x402_payments_verifying on x402_payments (leased_until) where state = 'verifying';

alter table x402_payments enable row level security;
alter table x402_payments force row level security;
create policy tenant on x402_payments
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
