-- Old processes may keep running: only adds a column. They answer with JSON.

-- RFC 9701 section 6. Null: RS256.
alter table applications add column introspection_signed_response_alg text;
