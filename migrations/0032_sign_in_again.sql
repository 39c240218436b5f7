-- Old processes may keep running: what they replace is not linked, as before.

-- A person who signs in again has a new session in the same browser. Signing out there ends the tokens
-- of both sign-ins: to the person it is one.
alter table browser_sessions add column replaced_by uuid;
create index browser_sessions_replaced on browser_sessions (tenant_id, replaced_by)
  where replaced_by is not null;

create or replace function svc_end_tokens_of_session() returns trigger language plpgsql as $$
begin
  with recursive earlier (id) as (
    select new.id
    union
    select b.id from earlier e join browser_sessions b on b.replaced_by = e.id
    where b.tenant_id = new.tenant_id
  )
  update sessions set ended_at = new.ended_at, ended_reason = new.ended_reason
  where tenant_id = new.tenant_id and id in (select id from earlier) and ended_at is null;
  return null;
end
$$;
