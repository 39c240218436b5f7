-- Old processes may keep running: only adds a column that may be null. Organizations that they create are not counted.

-- A digest of the network that an organization was registered from: its tenants hold a part of shared resources together.
alter table organizations add column registering_network bytea;
