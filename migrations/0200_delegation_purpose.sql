-- Old processes may keep running: only adds columns.

-- What the agent wants to do, as it stated it and the person saw it. Null: it stated nothing.
alter table delegation_requests add column purpose text;
alter table delegations add column purpose text;
