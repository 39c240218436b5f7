-- Old processes may keep running: only adds columns.

alter table vault_managed_tokens
  -- An answer of the token endpoint, sealed, until its tokens are stored: a process that is killed loses no refresh token.
  add column answer bytea,
  add column answer_stamp bytea,
  -- A token that was obtained after a rejection was rejected too: until then no rejection ends a token.
  add column kept_until timestamptz;
