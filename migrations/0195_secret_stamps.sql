-- Old processes may keep running: no value has a stamp before the database is finished (0196).

-- Sealed values that are rewritten in place are bound to a stamp of their row, so that a value of an older copy of the row
-- does not open. Null: the value was sealed without one.
alter table vault_credentials add column secret_stamp bytea;
alter table vault_managed_tokens add column token_stamp bytea;
alter table webhooks
  add column secret_stamp bytea,
  add column previous_secret_stamp bytea;
alter table sso_providers add column client_secret_sealed_stamp bytea;
alter table totp_factors add column secret_sealed_stamp bytea;

-- True when every process opens values with a stamp.
create function svc_seals_with_stamps() returns boolean
language sql immutable parallel safe as $$ select false $$;
