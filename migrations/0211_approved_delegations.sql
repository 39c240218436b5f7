-- Old processes may keep running: a delegation that one of them lists is asked again.

-- The delegations whose person has approved a call of a grant with `first`, which needs no more of theirs.
alter table vault_grants add column approved_delegations text[] not null default '{}';
