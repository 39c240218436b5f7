-- Old processes may keep running: only adds a column that may be empty.

-- The session that decided, for a form that is sent twice.
alter table backchannel_requests add column decided_session_id uuid;
