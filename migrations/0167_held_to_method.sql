-- Old processes may keep running: they take the secret of every application in header and form.

-- True: the creator named the method, and the secret of client_secret_basic is refused in the form, of
-- client_secret_post in the header.
alter table applications add column held_to_method boolean not null default false;
