-- Old processes may keep running: only adds tables.

-- Issuers of tokens that workloads exchange for tokens of this service (RFC 7523, RFC 8693).
create table trusted_issuers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  name text not null,
  issuer text not null,
  -- One of them: an issuer that speaks for workloads must not speak for people.
  purposes text[] not null check (cardinality(purposes) = 1),
  kind text not null,
  status text not null check (status in ('active', 'disabled')),
  -- Where the keys are, or the keys. Null: the metadata of the issuer says it.
  jwks_uri text,
  jwks jsonb,
  spiffe jsonb,
  -- Empty: the issuer of this deployment, with and without a slash at its end.
  audiences text[] not null,
  allowed_algs text[] not null,
  max_token_age_secs integer not null check (max_token_age_secs > 0),
  clock_skew_secs integer not null check (clock_skew_secs >= 0),
  require_jti boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id)
);
create index trusted_issuers_listed on trusted_issuers (tenant_id, created_at desc, id desc);
create unique index trusted_issuers_one on trusted_issuers (tenant_id, issuer, purposes);

alter table trusted_issuers enable row level security;
alter table trusted_issuers force row level security;
create policy tenant on trusted_issuers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));

-- Which tokens of an issuer stand for which application. The first rule that matches decides.
create table trusted_issuer_rules (
  tenant_id uuid not null,
  id uuid not null,
  trusted_issuer_id uuid not null,
  name text not null,
  client_id uuid not null,
  -- [{claim, op, value}]: all of them hold.
  conditions jsonb not null,
  scopes text[] not null,
  resources text[] not null,
  max_lifetime_secs integer check (max_lifetime_secs > 0),
  position integer not null,
  created_at timestamptz not null,
  primary key (tenant_id, id),
  unique (id),
  foreign key (tenant_id, trusted_issuer_id) references trusted_issuers (tenant_id, id) on delete cascade
);
create index trusted_issuer_rules_order on trusted_issuer_rules (tenant_id, trusted_issuer_id, position, created_at, id);

alter table trusted_issuer_rules enable row level security;
alter table trusted_issuer_rules force row level security;
create policy tenant on trusted_issuer_rules using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
