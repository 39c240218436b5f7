-- Old processes may keep running: only adds a table.

-- Requests that a person decides elsewhere than where they were made: at the page of a device code
-- (RFC 8628), or in their inbox (OpenID Connect CIBA). Whoever asked polls with the code.
create table backchannel_requests (
  tenant_id uuid not null,
  -- Also the id of the session and of the refresh family that it is turned into.
  id uuid not null,
  kind text not null check (kind in ('device', 'ciba')),
  -- Of the device_code or the auth_req_id.
  code_sha256 bytea not null unique check (length(code_sha256) = 32),
  -- What the person types, as long as nobody has decided.
  user_code text,
  client_id uuid not null,
  status text not null default 'pending'
    check (status in ('pending', 'approved', 'denied', 'redeemed')),
  -- Asked for; once approved, what was granted.
  scopes text[] not null,
  audience text[] not null,
  -- The least level that the person must have signed in with.
  level_asked smallint not null default 1 check (level_asked between 1 and 2),
  binding_message text,
  -- Where the request came from, for the person to compare.
  asked_from text,
  -- Least time between two polls; every poll that comes too fast makes it longer.
  interval_secs integer not null check (interval_secs > 0),
  polled_at timestamptz,
  -- Who is asked (CIBA: null where there is no such person), then who decided.
  subject text,
  organization_id uuid,
  level smallint check (level between 1 and 3),
  amr text[],
  auth_time timestamptz,
  decided_at timestamptz,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, client_id) references applications (tenant_id, id) on delete cascade,
  check (status not in ('approved', 'redeemed')
    or (subject is not null and level is not null and amr is not null and auth_time is not null))
);
create unique index backchannel_requests_user_code on backchannel_requests (user_code)
  where user_code is not null;
create index backchannel_requests_inbox on backchannel_requests (tenant_id, subject)
  where kind = 'ciba' and status = 'pending';
create index backchannel_requests_expired on backchannel_requests (expires_at);

alter table backchannel_requests enable row level security;
alter table backchannel_requests force row level security;
create policy tenant on backchannel_requests
  using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
