-- Old processes may keep running: they find an account whose domain has letters by its A-labels only.

-- The address as it was typed, before `svc migrate` converted its domain to A-labels. Null: it was not converted.
alter table accounts add column typed_email text;
