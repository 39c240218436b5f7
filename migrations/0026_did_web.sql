-- Old processes may keep running: they register agents by did:key as before.

-- What names the agent that a challenge is issued for; `did` is a DID of that method.
alter table pow_challenges add column anchor_type text not null default 'did_key'
  check (anchor_type in ('did_key', 'did_web'));

-- An old process knows nothing of the column: it must not write a did:web down as a did:key.
alter table agent_anchors add constraint agent_anchors_web_check
  check ((type = 'did_web') = (value like 'did:web:%'));
