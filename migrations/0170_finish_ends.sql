-- Old processes must not keep running: what ends with a user, an agent, a delegation, a session or a credential, they leave to these triggers.

-- The service ends it in the same transaction (storage/platform/ends). The triggers that stay announce, forbid, or keep a copy.
drop trigger if exists agent_suspensions_delegations on agent_suspensions;
drop trigger if exists agents_delegations_deleted on agents;
drop trigger if exists agents_delegations_suspended on agents;
drop trigger if exists browser_sessions_tokens on browser_sessions;
drop trigger if exists delegations_credentials on delegations;
drop trigger if exists issued_credentials_status on issued_credentials;
drop trigger if exists tenant_users_credentials_deleted on tenant_users;
drop trigger if exists tenant_users_credentials_ended on tenant_users;
drop trigger if exists tenant_users_credentials_roles on tenant_users;
drop trigger if exists tenant_users_delegations on tenant_users;
drop trigger if exists tenant_users_scim on tenant_users;

create or replace trigger delegations_standing after update of revoked_at on delegations
  for each row when (new.revoked_at is not null and old.revoked_at is null)
  execute function svc_announce_standing();

drop function if exists svc_end_delegations_in_tenant();
drop function if exists svc_end_delegations_of_agent();
drop function if exists svc_end_delegations_of_person();
drop function if exists svc_end_tokens_of_delegation();
drop function if exists svc_end_tokens_of_session();
drop function if exists svc_revoke_credentials_of_delegation();
drop function if exists svc_revoke_credentials_of_person();
drop function if exists svc_revoke_credentials_of_role();
drop function if exists svc_credential_revoked();
drop function if exists svc_scim_user_removed();

-- No statement of the service takes an address away. Who does it with SQL still ends the credentials that state it.
create or replace function svc_revoke_credentials_of_email() returns trigger language plpgsql as $$
begin
  with revoked as (
    update issued_credentials c set revoked_at = now(), revoked_reason = 'email_changed'
    from tenant_users u
    where u.account_id = new.id and c.tenant_id = u.tenant_id and c.subject = u.sub
      and c.configuration_id = 'VerifiedEmail' and c.revoked_at is null
    returning c.tenant_id, c.list_id, c.idx, c.revoked_at)
  update status_entries e set invalid_at = r.revoked_at
  from revoked r
  where e.tenant_id = r.tenant_id and e.list_id = r.list_id and e.idx = r.idx and e.invalid_at is null;
  return null;
end $$;
