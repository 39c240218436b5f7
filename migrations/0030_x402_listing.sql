-- Old processes may keep running: only adds an index.

-- Operators list payments, newest first.
create index x402_payments_listed on x402_payments (tenant_id, created_at desc, id desc);
