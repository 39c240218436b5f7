-- Old processes may keep running: only adds a column that may be empty.

-- The scopes that a request without scope gets by client_credentials; null: those that the service chooses.
alter table applications add column default_scopes text[];
