-- Old processes may keep running: only adds tables, columns that may be null and columns with defaults.

-- A client that is identified by the URL of its metadata document has a row among the applications, which the service
-- writes from the document. Null: a registered client, whose client_id is its id.
alter table applications add column metadata_url text;
create unique index applications_by_metadata_url
  on applications (metadata_url, tenant_id) where metadata_url is not null;

-- What a tenant knows about such a client. `id` is that of its application.
create table observed_clients (
  tenant_id uuid not null,
  id uuid not null,
  client_id text not null,
  -- What the client calls itself. Not verified.
  client_name text,
  document_sha256 text not null,
  -- SHA-256 of the members whose change needs a new consent.
  decision_sha256 text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  -- When the last grant expires at the latest.
  grants_until timestamptz not null,
  primary key (tenant_id, id),
  unique (tenant_id, client_id),
  foreign key (tenant_id, id) references applications (tenant_id, id) on delete cascade
);
create index observed_clients_listed on observed_clients (tenant_id, first_seen_at desc, id desc);
create index observed_clients_ended on observed_clients (grants_until);

-- The documents that the client had. A code is redeemed under the document of its authorization request.
create table observed_client_documents (
  tenant_id uuid not null,
  id uuid not null,
  document_sha256 text not null,
  document jsonb not null,
  first_seen_at timestamptz not null,
  primary key (tenant_id, id, document_sha256),
  foreign key (tenant_id, id) references observed_clients (tenant_id, id) on delete cascade
);

do $$
declare
  protected text;
begin
  foreach protected in array array['observed_clients', 'observed_client_documents'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;

-- Fetched documents, shared by all processes and tenants: public content, no row of a tenant.
create table remote_documents (
  url text not null,
  kind text not null check (kind in ('client', 'keys')),
  document jsonb not null,
  sha256 text not null,
  fetched_at timestamptz not null,
  fresh_until timestamptz not null,
  primary key (kind, url)
);
create index remote_documents_ended on remote_documents (fresh_until);

alter table authorization_codes add column document_sha256 text;
alter table refresh_families add column document_sha256 text;
create index refresh_families_of_observed
  on refresh_families (tenant_id, client_id) where document_sha256 is not null;
-- The metadata of the client has changed since: the next authorization request asks again.
alter table consents add column asks_again boolean not null default false;
alter table resource_consents add column asks_again boolean not null default false;
