-- Old processes may keep running: they answer 503 to the token requests of an application with RS256.

alter table applications
  drop constraint applications_id_token_signed_response_alg_check,
  add constraint applications_id_token_signed_response_alg_check check (id_token_signed_response_alg
    in ('ES256', 'EdDSA', 'RS256')) not valid;
