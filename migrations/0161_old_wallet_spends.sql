-- Old processes may keep running: they read no spend that is older than the longest window.

-- Finds the spends that the retention worker deletes.
create index wallet_spends_age on wallet_spends (spent_at);
