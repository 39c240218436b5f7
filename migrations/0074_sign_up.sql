-- Old processes may keep running: only allows another value.

-- The link of a sign-up. It has no account: the address gets one when the link is used.
alter table mail_tickets drop constraint mail_tickets_purpose_check;
alter table mail_tickets add constraint mail_tickets_purpose_check check
  (purpose in ('sign_in', 'password_reset', 'invitation', 'email_verification', 'sign_up'));
