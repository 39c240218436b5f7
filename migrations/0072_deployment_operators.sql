-- Old processes may keep running: only adds a table and a column with a default.

-- People who administer the deployment: what they may do in the control plane besides their role there. Only the command
-- line writes it.
create table deployment_operators (
  account_id uuid primary key references accounts (id) on delete cascade,
  scopes text[] not null,
  appointed_at timestamptz not null
);
alter table deployment_operators enable row level security;
alter table deployment_operators force row level security;
create policy crossing on deployment_operators
  using (svc_visible('00000000-0000-0000-0000-000000000000'::uuid))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'::uuid));

-- What the user who accepts the invite is appointed to.
alter table operator_invites add column appointed_scopes text[] not null default '{}';
