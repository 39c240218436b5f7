-- Old processes may keep running: only adds indexes.

-- The events of a request, of one tenant or of all (`svc audit explain`), and of an object.
drop index concurrently if exists audit_events_of_request;
create index concurrently audit_events_of_request on audit_events (request_id, tenant_id, occurred_at, sequence)
  where request_id is not null;
drop index concurrently if exists audit_events_of_resource;
create index concurrently audit_events_of_resource on audit_events (tenant_id, (resource ->> 'id'), occurred_at, sequence)
  where resource is not null;
