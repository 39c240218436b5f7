-- Old processes may keep running: only adds a column with a default.

-- The letters of an invite that are not answered yet, at most five addresses: by SHA-256 of the address, each
-- with the SHA-256 of its link, the address, the name, and what was chosen in which browser. Empty once used.
alter table operator_invites add column letters jsonb not null default '{}';
