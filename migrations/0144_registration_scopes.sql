-- Old processes may keep running: only adds columns that may be empty.

-- The scopes that the maker of an initial access token chose, for all clients registered with it. Empty: none chosen, so
-- user scopes, and those of credentials and API resources.
alter table registration_tokens add column scope_bound text[];
alter table applications add column registration_scope_bound text[];
