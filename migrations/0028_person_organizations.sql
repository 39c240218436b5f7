-- Old processes may keep running: only adds a column, which they leave empty.

-- The tenant in whose name a person made the organization. Tokens of that tenant may speak of it; those
-- that applications elsewhere hold of the same person must not learn that it exists.
alter table organizations add column made_in_tenant_id uuid references tenants (id);
