-- Old processes may keep running: only adds tables.

-- What a tenant's columns are sealed with. The key itself is wrapped by the kms; see docs/keys.md.
create table data_keys (
  -- The nil UUID for what belongs to the service as a whole.
  tenant_id uuid not null,
  -- 1, 2, 3, ...: the newest seals, all of them open.
  version integer not null check (version > 0),
  wrapped bytea not null,
  -- The master key that wrapped it, as the kms names it. Tells at start whether this kms fits.
  master_key_id text not null,
  created_at timestamptz not null,
  primary key (tenant_id, version)
);
create index data_keys_of_master on data_keys (master_key_id);

-- next: published, not yet used. current: signs. retired: published until its last token has died.
create table signing_keys (
  -- The nil UUID for the keys of the canonical issuer.
  tenant_id uuid not null,
  -- RFC 7638 thumbprint.
  kid text not null,
  algorithm text not null check (algorithm in ('ES256', 'EdDSA')),
  state text not null check (state in ('next', 'current', 'retired')),
  public_jwk jsonb not null,
  -- PKCS #8, sealed. A retired key has none: it cannot sign again.
  private_sealed bytea,
  created_at timestamptz not null,
  current_since timestamptz,
  verifiable_until timestamptz,
  primary key (tenant_id, kid),
  check ((state = 'retired') = (private_sealed is null)),
  check ((state = 'retired') = (verifiable_until is not null)),
  check (state = 'next' or current_since is not null)
);
create unique index signing_keys_current on signing_keys (tenant_id, algorithm)
  where state = 'current';
create unique index signing_keys_next on signing_keys (tenant_id, algorithm)
  where state = 'next';

-- Every process hears of a change at the commit that makes it.
create function svc_announce_signing_keys() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_signing_keys', '');
  return null;
end
$$;
create trigger announce after insert or update or delete on signing_keys
  for each statement execute function svc_announce_signing_keys();

do $$
declare
  protected text;
begin
  foreach protected in array array['data_keys', 'signing_keys'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
