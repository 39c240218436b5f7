-- Old processes may keep running: only adds an index.

-- `svc trace` finds the events of a request by time and request id, in all tenants. Events are appended in the order of
-- their time, so a block range index is enough: it has a few entries per megabyte and costs nothing to keep.
create index audit_events_time on audit_events using brin (occurred_at);
