-- Old processes may keep running: only allows more.

-- A request of CIBA may ask for the third level of assurance too.
alter table backchannel_requests drop constraint backchannel_requests_level_asked_check;
alter table backchannel_requests add constraint backchannel_requests_level_asked_check
  check (level_asked between 1 and 3);
