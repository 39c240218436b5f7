-- Old processes may keep running: they require a passkey that was never used with user verification as a second factor.

-- False: the browser created the passkey after a sign-in with a password, and no response with user verification followed yet.
-- Such a passkey is a way in, and no second factor.
alter table passkeys add column user_verified boolean not null default true;

alter table passkey_ceremonies
  drop constraint passkey_ceremonies_purpose_check,
  add constraint passkey_ceremonies_purpose_check
    check (purpose in ('sign_in', 'second_factor', 'registration', 'conditional')) not valid;

-- When this browser was last asked to create a passkey.
alter table known_browsers add column passkey_asked_at timestamptz;
