-- Old processes may keep running: only adds a column.

-- Set while an account has no mailbox: its address is a placeholder below guest.invalid (RFC 6761 section 6.4).
-- Removed when the person proves an address.
alter table accounts add column guest_since timestamptz;
create index accounts_guests on accounts (guest_since) where guest_since is not null;
