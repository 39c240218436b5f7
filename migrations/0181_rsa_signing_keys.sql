-- Old processes may keep running: they publish an RSA key without its numbers and do not sign with it, so applications
-- get RS256 when all processes run this build.

alter table signing_keys
  drop constraint signing_keys_algorithm_check,
  add constraint signing_keys_algorithm_check check (algorithm in ('ES256', 'EdDSA', 'RS256')) not valid;
