-- Old processes may keep running: only adds columns with defaults, and a table. They find no rules of the new issuers.

-- Issuers that speak for people (ID-JAG): how a person is found for whom one speaks the first time.
alter table trusted_issuers
  add column subject_mapping text check (subject_mapping in ('link', 'email', 'jit')),
  add column email_domains text[] not null default '{}',
  add column trust_aud_sub boolean not null default false;

-- The user for whom a trusted issuer speaks. The link decides from the first match on, whatever the issuer says later.
create table identity_assertion_links (
  tenant_id uuid not null,
  trusted_issuer_id uuid not null,
  -- The tenant of the issuer, and the subject in it, as JSON: subjects are unique there only.
  subject text not null,
  tenant_user_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, trusted_issuer_id, subject),
  foreign key (tenant_id, trusted_issuer_id) references trusted_issuers (tenant_id, id) on delete cascade,
  foreign key (tenant_id, tenant_user_id) references tenant_users (tenant_id, id) on delete cascade
);
create index identity_assertion_links_of_user on identity_assertion_links (tenant_id, tenant_user_id);

alter table identity_assertion_links enable row level security;
alter table identity_assertion_links force row level security;
create policy tenant on identity_assertion_links using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
