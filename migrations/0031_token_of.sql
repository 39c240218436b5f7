-- Old processes may keep running: they fail to open a credential that has no secret of its own.

-- A credential whose secret is the access token that an oauth2 credential of the tenant gives.
alter table vault_credentials
  add column token_of uuid,
  add foreign key (tenant_id, token_of) references vault_credentials (tenant_id, id)
    on delete cascade,
  add check (token_of is null or (credential_type in ('api_key', 'custom') and non_exportable)),
  drop constraint vault_credentials_check,
  add constraint vault_credentials_secret
    check ((status = 'revoked' or token_of is not null) = (secret is null));
create index vault_credentials_token_of on vault_credentials (tenant_id, token_of)
  where token_of is not null;
