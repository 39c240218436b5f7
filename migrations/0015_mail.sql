-- Old processes may keep running: only adds tables.

-- Mail on its way: written in the transaction of the change it tells of, sent by the async plane.
create table outgoing_mail (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  kind text not null,
  -- dropped: never to be sent, to a reserved domain or to nobody.
  status text not null check (status in ('queued', 'sent', 'failed', 'expired', 'dropped')),
  -- The letter, sealed under the tenant's data key; gone as soon as nothing is left to send.
  letter_sealed bytea,
  attempts integer not null default 0 check (attempts >= 0),
  next_attempt_at timestamptz,
  lease uuid,
  leased_until timestamptz,
  -- What the last attempt ended with: a name of ours, never a line of the server.
  error text,
  created_at timestamptz not null,
  -- What the letter offers is worth nothing afterwards.
  expires_at timestamptz not null,
  finished_at timestamptz,
  primary key (tenant_id, id),
  check ((status = 'queued') = (letter_sealed is not null)),
  check ((status = 'queued') = (next_attempt_at is not null)),
  check ((status = 'queued') = (finished_at is null))
);
create index outgoing_mail_due on outgoing_mail (next_attempt_at) where status = 'queued';
create index outgoing_mail_queued on outgoing_mail (tenant_id) where status = 'queued';
create index outgoing_mail_finished on outgoing_mail (finished_at) where finished_at is not null;

-- What a letter offers: one use of one link or code.
create table mail_tickets (
  tenant_id uuid not null references tenants (id) on delete cascade,
  id uuid not null,
  purpose text not null check
    (purpose in ('sign_in', 'password_reset', 'invitation', 'email_verification')),
  -- Null: nobody has this address, and nothing can be done with the ticket.
  account_id uuid references accounts (id) on delete cascade,
  -- The address it was written to, lower case: once the account has another it is worth nothing.
  email_key text not null check (email_key = lower(email_key)),
  link_sha256 bytea unique check (length(link_sha256) = 32),
  -- With the secret of the flow, which is not kept: the rows alone do not let a code be guessed.
  code_sha256 bytea check (length(code_sha256) = 32),
  -- The sign-in that it belongs to, and the browser that asked.
  flow_sha256 bytea check (length(flow_sha256) = 32),
  browser_sha256 bytea check (length(browser_sha256) = 32),
  attempts_left integer not null check (attempts_left >= 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (tenant_id, id)
);
create index mail_tickets_of_flow on mail_tickets (flow_sha256) where flow_sha256 is not null;
create index mail_tickets_of_account on mail_tickets (account_id) where used_at is null;
create index mail_tickets_expiry on mail_tickets (expires_at);

do $$
declare
  protected text;
begin
  foreach protected in array array['outgoing_mail', 'mail_tickets'] loop
    execute format('alter table %I enable row level security', protected);
    execute format('alter table %I force row level security', protected);
    execute format(
      'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
      protected);
  end loop;
end
$$;
