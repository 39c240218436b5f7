-- Old processes may keep running: only adds a column. They refuse the response modes with jwt, and answer stored requests unsigned.

-- JWT Secured Authorization Response Mode section 3. Null: RS256.
alter table applications add column authorization_signed_response_alg text;
