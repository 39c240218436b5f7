-- Old processes may keep running: only replaces indexes. Building them holds back the numbering of events, and no request
-- waits for that but the readers of the audit log.

-- Ascending, as rows arrive: their pages are filled. A descending index splits its first page in halves again and again.
create index audit_events_in_time on audit_events (tenant_id, occurred_at, sequence);
create index audit_events_of_type on audit_events (tenant_id, type, occurred_at, sequence);
drop index audit_events_listed;
drop index audit_events_by_type;
