-- Old processes may keep running: they keep no answer, and refuse a form that is sent again.

-- The answer to the form that used a link up, sealed for the browser that sent it.
alter table mail_tickets add column answer bytea;
