-- Old processes may keep running: only adds a column with a default.

-- Whether a caller's Range goes to the upstream. Slices of an echo are not recognized as the secret.
alter table vault_grants add column allow_range boolean not null default true;
