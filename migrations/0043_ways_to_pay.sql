-- Old processes may keep running: columns are added that may be empty, and constraints are widened.

-- What an anonymous buyer said at a payment link, as they said it. `metadata` is what merchants
-- correlate by: there the members of the link win.
alter table charges add column buyer_metadata jsonb;

-- Refunds of money that did not come through us: the merchant sent it back, and says how.
alter table refunds
  add column external_reference text check (length(external_reference) between 1 and 255),
  drop constraint refunds_status_check,
  add constraint refunds_status_check
    check (status in ('pending', 'succeeded', 'failed', 'recorded')),
  add check (status <> 'recorded' or external_reference is not null);

-- A payment by x402 pays a payment link, and makes a charge; or a checkout session, and pays its charge.
alter table x402_payments
  alter column payment_link_id drop not null,
  add column checkout_session_id uuid,
  add check (num_nonnulls(payment_link_id, checkout_session_id) = 1);
-- A checkout whose payment failed can be paid by another one.
drop index x402_payments_charge;
create unique index x402_payments_charge on x402_payments (tenant_id, charge_id)
  where state in ('settling', 'unknown', 'settled');
-- Buyers name a session and no tenant.
create unique index checkout_sessions_named on checkout_sessions (id);
