-- Old processes may keep running: only adds a column that may be empty, and replaces a function.

-- A grant with offline_access outlives the browser session in which the user gave it, so that its tokens
-- hang on a session of its own. ID tokens still name the browser session, by which applications sign out.
alter table refresh_families add column browser_session_id uuid;
create index refresh_families_of_browser on refresh_families (browser_session_id)
  where browser_session_id is not null;

-- A tenant may decide that a sign-out ends such grants as well (settings, logout_revokes_offline).
create or replace function svc_end_tokens_of_session() returns trigger language plpgsql as $$
begin
  with recursive earlier (id) as (
    select new.id
    union
    select b.id from earlier e join browser_sessions b on b.replaced_by = e.id
    where b.tenant_id = new.tenant_id
  )
  update sessions set ended_at = new.ended_at, ended_reason = new.ended_reason
  where tenant_id = new.tenant_id and ended_at is null and id in (
    select id from earlier
    union
    select f.session_id from earlier e
      join refresh_families f on f.browser_session_id = e.id and f.tenant_id = new.tenant_id
    where exists (select from tenants t where t.id = new.tenant_id
      and t.settings -> 'logout_revokes_offline' = 'true'));
  return null;
end
$$;
