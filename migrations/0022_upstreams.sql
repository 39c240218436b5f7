-- Old processes may keep running: only adds; their sessions are not confined.

-- Opened by a tenant's own provider, for an account that has other keys: it is good for that tenant,
-- and changes nothing that counts elsewhere.
alter table browser_sessions add column confined boolean not null default false;
-- The provider that vouched for the person; null: we saw the proof ourselves. Its sessions end with it.
alter table browser_sessions add column provider text;

-- Identity providers of a tenant: where its people sign in besides here.
create table sso_providers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  issuer text not null,
  client_id text not null,
  -- Sealed under the tenant's data key; null: a public client.
  client_secret_sealed bytea,
  token_endpoint_auth_method text not null
    check (token_endpoint_auth_method in ('client_secret_basic', 'client_secret_post', 'none')),
  scopes text[] not null,
  -- Null: discovery says.
  authorization_endpoint text,
  token_endpoint text,
  userinfo_endpoint text,
  jwks_uri text,
  -- An acr of these counts as two factors.
  trusted_acr_values text[] not null,
  -- Whether people whom the tenant does not know yet become its users.
  provision boolean not null,
  active boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  check ((token_endpoint_auth_method = 'none') = (client_secret_sealed is null))
);
create index sso_providers_listed on sso_providers (tenant_id, created_at desc, id desc);

-- Domains of addresses that a tenant says are its organization's, proved or not yet.
create table verified_domains (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  -- Lower case, A-labels, no trailing dot.
  domain text not null check (domain = lower(domain)),
  -- What the TXT record has to say. No secret.
  proof text not null,
  -- The provider that addresses of the domain are led to, and the only one believed about them.
  sso_provider_id uuid,
  -- People of the domain who sign in through that provider join the organization.
  auto_join boolean not null,
  created_at timestamptz not null,
  -- Null: not proved yet.
  verified_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, domain),
  foreign key (tenant_id, sso_provider_id) references sso_providers (tenant_id, id)
    on delete set null (sso_provider_id)
);
create index verified_domains_listed on verified_domains (tenant_id, created_at desc, id desc);

-- Global: a domain belongs to the one organization that proved it, whatever tenants of it use it.
create table domain_owners (
  domain text primary key,
  organization_id uuid not null references organizations (id) on delete cascade,
  verified_at timestamptz not null
);
create index domain_owners_of_organization on domain_owners (organization_id);

-- Who an account is elsewhere. Global, like accounts: a provider of the deployment vouches in every
-- tenant, one of a tenant in that tenant alone.
create table upstream_identities (
  account_id uuid not null references accounts (id) on delete cascade,
  id uuid not null,
  -- 'google', 'microsoft', 'gitlab', 'oidc', or the id of a provider of the tenant.
  provider text not null,
  -- Null: a provider of the deployment.
  tenant_id uuid references tenants (id) on delete cascade,
  issuer text not null,
  subject text not null,
  -- As the provider last said; to recognise it by, nothing is looked up by it.
  email text,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  primary key (account_id, id),
  -- The same subject of another provider is somebody else, though the issuer be the same.
  unique (provider, issuer, subject)
);
create index upstream_identities_of_tenant on upstream_identities (tenant_id)
  where tenant_id is not null;

-- Browsers that were sent to a provider and have not come back.
create table upstream_sign_ins (
  tenant_id uuid not null references tenants (id) on delete cascade,
  state_sha256 bytea not null unique check (length(state_sha256) = 32),
  -- Of the secret of the browser that was sent: nobody else may come back in its place.
  browser_sha256 bytea not null check (length(browser_sha256) = 32),
  provider text not null,
  -- The session that links an identity to its account; null: somebody signs in.
  linking_session_id uuid,
  -- Nonce, PKCE verifier and the secret of the sign-in flow.
  sealed bytea not null,
  -- The person has to prove who they are there and then, however signed in they are.
  fresh boolean not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, state_sha256)
);
create index upstream_sign_ins_expired on upstream_sign_ins (expires_at);

do $$
declare
  protected text;
begin
  foreach protected in array array['sso_providers', 'verified_domains', 'upstream_sign_ins'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
  foreach protected in array array['domain_owners', 'upstream_identities'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy crossing on %I using (svc_visible(''00000000-0000-0000-0000-000000000000''))
         with check (svc_visible(''00000000-0000-0000-0000-000000000000''))',
      protected);
  end loop;
end
$$;
