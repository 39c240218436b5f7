-- Old processes may keep running: they keep no answer, and refuse a form that is sent again.

-- The answer to the form that used an invite up, sealed for the browser that sent it.
alter table operator_invites add column answer bytea;
