-- Old processes may keep running: only adds a table, and columns with defaults.

-- OpenID Connect Back-Channel Logout 1.0 section 2.2. Null: the application is not told.
alter table applications
  add column backchannel_logout_uri text,
  add column backchannel_logout_session_required boolean not null default false;

-- The applications that a person signed in to in a browser session, and that are told when it ends. The row of an ended
-- session is the logout to deliver: it goes once the application has answered.
create table session_applications (
  tenant_id uuid not null references tenants (id) on delete cascade,
  -- The `sid` of its ID tokens: the id of a browser session. The row outlives that one.
  session_id uuid not null,
  application_id uuid not null,
  subject text not null,
  -- Null: the session is open.
  ended_at timestamptz,
  -- Open: when the session may have timed out. Ended: when the next logout token is due.
  due_at timestamptz not null,
  -- Logout tokens that were sent.
  attempts integer not null default 0,
  primary key (tenant_id, session_id, application_id)
);
create index session_applications_open on session_applications (due_at) where ended_at is null;
create index session_applications_ended on session_applications (due_at) where ended_at is not null;
create index session_applications_of_tenant on session_applications (tenant_id, due_at) where ended_at is not null;
create index session_applications_of_person on session_applications (tenant_id, subject);

alter table session_applications enable row level security;
alter table session_applications force row level security;
create policy tenant on session_applications using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
