-- Old processes may keep running: only adds an index.

-- Checkouts that nobody paid are removed after a while.
create index checkout_sessions_expired on checkout_sessions (expires_at) where status = 'expired';
