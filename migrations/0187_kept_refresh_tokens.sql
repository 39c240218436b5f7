-- Old processes may keep running: only adds a column with a default. They rotate the refresh tokens of every application.

-- False: refresh tokens stay as they are. For confidential applications whose tokens are bound to a key (FAPI 2.0 Security
-- Profile section 5.3.2.1).
alter table applications add column rotate_refresh_tokens boolean not null default true;
