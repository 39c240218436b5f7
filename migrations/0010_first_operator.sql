-- Old processes may keep running: only loosens a column.

-- The first operator is invited by nobody but whoever holds the deployment.
alter table operator_invites alter column invited_by_agent_id drop not null;
