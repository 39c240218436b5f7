-- The role of the service is no superuser, so that row-level security applies to it.
create role svc login password 'local-only' nosuperuser nobypassrls;
create database svc owner svc;
