-- Old processes may keep running: they do not note where a secret was.

-- When the application last sent its secret in another place than its method names, to the day. `svc doctor` lists these.
alter table applications add column secret_misplaced_at timestamptz;
