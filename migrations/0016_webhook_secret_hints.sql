-- Old processes may keep running: only adds columns that may be null.

-- 16 bits of the SHA-256 of a secret: with one in hand, which few subscriptions it may be of. Too
-- little to guess a secret by. Null for secrets stored before; they are found the long way once.
alter table webhooks
  add column secret_hint integer check (secret_hint between 0 and 65535),
  add column previous_secret_hint integer check (previous_secret_hint between 0 and 65535);
create index webhooks_hinted on webhooks (secret_hint) where deleted_at is null and active;
create index webhooks_hinted_before on webhooks (previous_secret_hint)
  where previous_secret_hint is not null;
