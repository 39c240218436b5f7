-- Old processes may keep running: only adds a column that may be empty.

-- The address as the tenant wrote it when it invited a person. Until the person comes in the tenant sees this
-- one: how the account writes the address would tell that there is an account.
alter table tenant_users add column invited_as text
  constraint tenant_users_invited_as_check check (char_length(invited_as) <= 320);
