-- Old processes may keep running: only adds a table.

-- Where an account has signed in before: a browser, by a secret of its own, and a network. Global, like the account.
create table known_browsers (
  account_id uuid not null references accounts (id) on delete cascade,
  browser_sha256 bytea not null check (length(browser_sha256) = 32),
  -- A /24 of IPv4, a /48 of IPv6.
  network text not null check (char_length(network) between 1 and 64),
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (account_id, browser_sha256, network)
);
create index known_browsers_seen on known_browsers (last_seen_at);
alter table known_browsers enable row level security;
alter table known_browsers force row level security;
create policy crossing on known_browsers using (svc_visible('00000000-0000-0000-0000-000000000000'))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));
