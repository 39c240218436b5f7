-- Old processes may keep running: only adds a column. They answer with JSON.

-- OpenID Connect Core section 5.3.2. Null: userinfo is JSON.
alter table applications add column userinfo_signed_response_alg text;
