-- Old processes must not keep running: they do not open sealed values with a stamp.

create or replace function svc_seals_with_stamps() returns boolean
language sql immutable parallel safe as $$ select true $$;

-- form_answers has them.
alter table mail_tickets drop column if exists answer;
alter table operator_invites drop column if exists answer;
