-- Old processes may keep running: only adds a column that may be empty.

-- The answer of a decided request, encrypted under its handle and the session cookie, for a form that is sent twice.
alter table authorization_requests add column answer bytea;
