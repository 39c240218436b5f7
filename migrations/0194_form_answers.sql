-- Old processes may keep running: they keep no answer, and refuse a form that is sent again.

-- The answers to forms that a browser may send again for a minute, sealed for that browser.
create table form_answers (
  tenant_id uuid not null references tenants (id) on delete cascade,
  -- SHA-256 of the secret of the form: the token of its link, or the handle of the authorization request.
  form_sha256 bytea not null unique check (length(form_sha256) = 32),
  answer bytea not null,
  expires_at timestamptz not null,
  primary key (tenant_id, form_sha256)
);
create index form_answers_expiry on form_answers (expires_at);

alter table form_answers enable row level security;
alter table form_answers force row level security;
create policy tenant on form_answers using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
