-- Old processes may keep running: they read a client with this method as one without a secret, and refuse it.

-- Applications that authenticate with a JWT-SVID of a trusted issuer.
alter table applications
  drop constraint applications_token_endpoint_auth_method_check,
  add constraint applications_token_endpoint_auth_method_check check (token_endpoint_auth_method
    in ('none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt', 'spiffe_jwt')) not valid;
