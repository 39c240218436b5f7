-- Old processes may keep running: only adds a column with a default.

-- What an agent publishes about itself as a client of other services: {redirect_uris, client_uri, skills}.
alter table agents add column profile jsonb not null default '{}';
