-- Old processes may keep running: only adds a column. They show such a credential as active, and ask its upstream again.

-- The upstream refused the refresh token of the credential for good. Null: it did not, or the secret was replaced since.
alter table vault_credentials add column lapsed_at timestamptz;
