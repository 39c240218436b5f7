-- Old processes may keep running: only adds columns that may be empty.

-- What an initial access token lets a client have ends with what its maker may do. Empty: made before this
-- was kept, and good for what its maker held then, until it expires.
alter table registration_tokens
  add column maker_type text check (maker_type in ('human', 'agent', 'service')),
  add column maker_id text,
  add check ((maker_type is null) = (maker_id is null));
