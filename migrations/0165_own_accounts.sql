-- Old processes may keep running: they find no account of the new kind, whose users cannot sign in there.

-- The key of an account that is a sandbox's own ends with the tenant (storage/identity/email-keys.ts). The rows of before
-- hold the stricter rule.
alter table accounts drop constraint accounts_check;
alter table accounts add constraint accounts_email_key_check
  check (email_key = lower(email) or starts_with(email_key, lower(email) || '/')) not valid;
