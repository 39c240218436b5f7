-- Old processes may keep running: they sign credentials with the key of the service, which the tenant's set then has too.

-- The key that signed the credential. Null: a key of the service, before tenants had keys.
alter table issued_credentials add column kid text;
create index issued_credentials_of_service_key on issued_credentials (tenant_id, issued_at) where kid is null;
