-- Old processes may keep running: only adds tables and triggers.

-- Credential offers (OpenID4VCI section 4).
create table credential_offers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- The credential issuer identifier.
  issuer text not null,
  configuration_id text not null,
  -- The person that the credential is about, by their subject in the tenant.
  user_id uuid not null,
  subject text not null,
  delegation_id uuid,
  grant_type text not null check (grant_type in ('authorization_code', 'pre-authorized_code')),
  -- Of the secret in the URL of the offer. The code below is derived from that secret.
  handle_sha256 bytea not null unique check (length(handle_sha256) = 32),
  -- Of the pre-authorized code, or of issuer_state.
  code_sha256 bytea not null unique check (length(code_sha256) = 32),
  -- Of offer id and transaction code. Null if the offer needs none.
  tx_code_sha256 bytea check (length(tx_code_sha256) = 32),
  tx_failures smallint not null default 0,
  status text not null default 'offered' check (status in ('offered', 'redeemed', 'issued', 'burned')),
  -- The token that the code gave, or the grant that issuer_state led to.
  token_id uuid,
  grant_id uuid,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, subject) references tenant_users (tenant_id, sub) on delete cascade
);
create index credential_offers_listed on credential_offers (tenant_id, created_at desc, id desc);
create index credential_offers_of_token on credential_offers (tenant_id, token_id) where token_id is not null;
create index credential_offers_of_grant on credential_offers (tenant_id, grant_id) where grant_id is not null;
create index credential_offers_expired on credential_offers (expires_at);

-- What was issued, without the claims. The id is the `ref` of the status entry.
create table issued_credentials (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- Null if the wallet asked without an offer.
  offer_id uuid,
  user_id uuid not null,
  subject text not null,
  delegation_id uuid,
  configuration_id text not null,
  -- The roles that the credential states.
  roles text[] not null default '{}',
  list_id uuid not null,
  idx integer not null,
  -- One for all credentials of a response.
  notification_id uuid not null,
  notified_event text,
  issued_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  revoked_reason text,
  primary key (tenant_id, id),
  check ((revoked_at is null) = (revoked_reason is null))
);
create index issued_credentials_listed on issued_credentials (tenant_id, issued_at desc, id desc);
create index issued_credentials_of_person on issued_credentials (tenant_id, subject) where revoked_at is null;
create index issued_credentials_of_delegation on issued_credentials (tenant_id, delegation_id)
  where revoked_at is null and delegation_id is not null;
create index issued_credentials_of_response on issued_credentials (tenant_id, notification_id);
create index issued_credentials_expired on issued_credentials (expires_at);

do $$
declare
  protected text;
begin
  foreach protected in array array['credential_offers', 'issued_credentials'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- A revoked credential is INVALID in its status list from the same transaction on.
create function svc_credential_revoked() returns trigger language plpgsql as $$
begin
  update status_entries set invalid_at = new.revoked_at
  where tenant_id = new.tenant_id and list_id = new.list_id and idx = new.idx and invalid_at is null;
  return null;
end
$$;
create trigger issued_credentials_status after update of revoked_at on issued_credentials
  for each row when (new.revoked_at is not null and old.revoked_at is null)
  execute function svc_credential_revoked();

-- Credentials of a person end with the person's place in the tenant, whichever way that ends. A list of one
-- bit cannot show a suspension that may end, so a suspended person needs new credentials afterwards.
create function svc_revoke_credentials_of_person() returns trigger language plpgsql as $$
begin
  update issued_credentials set revoked_at = now(),
    revoked_reason = case
      when tg_op = 'DELETE' then 'user_removed'
      when new.status in ('removed', 'suspended') then 'user_' || new.status
      else 'user_suspended' end
  where tenant_id = old.tenant_id and subject = old.sub and revoked_at is null;
  return null;
end
$$;
create trigger tenant_users_credentials_ended after update of status, account_active on tenant_users
  for each row when ((new.status in ('removed', 'suspended') and old.status <> new.status)
    or (old.account_active and not new.account_active))
  execute function svc_revoke_credentials_of_person();
create trigger tenant_users_credentials_deleted after delete on tenant_users
  for each row execute function svc_revoke_credentials_of_person();

-- A credential that states a role ends when the person loses that role.
create function svc_revoke_credentials_of_role() returns trigger language plpgsql as $$
begin
  update issued_credentials set revoked_at = now(), revoked_reason = 'role_lost'
  where tenant_id = new.tenant_id and subject = new.sub and revoked_at is null
    and not roles <@ new.roles;
  return null;
end
$$;
create trigger tenant_users_credentials_roles after update of roles on tenant_users
  for each row when (not old.roles <@ new.roles)
  execute function svc_revoke_credentials_of_role();

create function svc_revoke_credentials_of_delegation() returns trigger language plpgsql as $$
begin
  update issued_credentials set revoked_at = new.revoked_at, revoked_reason = 'delegation_ended'
  where tenant_id = new.tenant_id and delegation_id = new.id and revoked_at is null;
  return null;
end
$$;
create trigger delegations_credentials after update of revoked_at on delegations
  for each row when (new.revoked_at is not null and old.revoked_at is null)
  execute function svc_revoke_credentials_of_delegation();

-- An address that changed or is not proved any more is no longer vouched for.
create function svc_revoke_credentials_of_email() returns trigger language plpgsql as $$
begin
  update issued_credentials c set revoked_at = now(), revoked_reason = 'email_changed'
  from tenant_users u
  where u.account_id = new.id and c.tenant_id = u.tenant_id and c.subject = u.sub
    and c.configuration_id = 'VerifiedEmail' and c.revoked_at is null;
  return null;
end
$$;
create trigger accounts_credentials after update of email_key, email_verified on accounts
  for each row when (old.email_key <> new.email_key or (old.email_verified and not new.email_verified))
  execute function svc_revoke_credentials_of_email();
