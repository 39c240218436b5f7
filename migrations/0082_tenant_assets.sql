-- Old processes may keep running: only adds a table.

-- Images of a tenant. The content is in the object store or the folder, under `<tenant_id>/<sha256>.<extension>`.
create table tenant_assets (
  tenant_id uuid not null references tenants (id) on delete cascade,
  kind text not null check (kind in ('logo', 'favicon')),
  sha256 bytea not null check (length(sha256) = 32),
  media_type text not null check (media_type in ('image/webp', 'image/png')),
  width integer not null check (width between 1 and 512),
  height integer not null check (height between 1 and 512),
  size_bytes integer not null check (size_bytes > 0),
  -- When an upload of this image last began.
  begun_at timestamptz not null,
  -- Null while the content is not yet stored.
  shown_since timestamptz,
  -- When another image took its place. It is removed later.
  retired_at timestamptz,
  primary key (tenant_id, kind, sha256),
  check (retired_at is null or shown_since is not null)
);
create unique index tenant_assets_shown on tenant_assets (tenant_id, kind)
  where shown_since is not null and retired_at is null;
create index tenant_assets_ended on tenant_assets (coalesce(retired_at, begun_at))
  where shown_since is null or retired_at is not null;
alter table tenant_assets enable row level security;
alter table tenant_assets force row level security;
create policy tenant on tenant_assets using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
