-- Old processes may keep running: only adds indexes.

-- An authority by its public address.
drop index concurrently if exists vault_credentials_ssh_ca;
create index concurrently vault_credentials_ssh_ca on vault_credentials (id) where ca_public_key is not null;
-- The certificates that end with an agent, a grant or a delegation.
drop index concurrently if exists ssh_certificates_of_agent;
create index concurrently ssh_certificates_of_agent on ssh_certificates (agent_id) where revoked_at is null;
drop index concurrently if exists ssh_certificates_of_grant;
create index concurrently ssh_certificates_of_grant on ssh_certificates (tenant_id, grant_id)
  where grant_id is not null;
drop index concurrently if exists ssh_certificates_of_delegation;
create index concurrently ssh_certificates_of_delegation on ssh_certificates (tenant_id, delegation_id)
  where delegation_id is not null;
