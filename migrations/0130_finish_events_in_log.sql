-- Old processes must not keep running: they do not find the events that are in the audit log alone.

create or replace function svc_events_in_log() returns boolean
language sql immutable parallel safe as $$ select true $$;
