-- Old processes may keep running: only adds columns with defaults. Their sign-out pages have no frames.

-- OpenID Connect Front-Channel Logout 1.0 section 2. Null: the application is not told.
alter table applications
  add column frontchannel_logout_uri text,
  add column frontchannel_logout_session_required boolean not null default false;
