-- Old processes may keep running: only adds columns. They refuse request objects, and take unsigned requests of every application.

-- RFC 9101. Null: any algorithm of the application's keys.
alter table applications
  add column require_signed_request_object boolean not null default false,
  add column request_object_signing_alg text;
