-- Old processes may keep running: the trigger confines the sessions that they open too.

-- The tenant decides whom its provider signs in, so such a session proves nothing outside of this tenant.
create function browser_sessions_confine() returns trigger language plpgsql as $$
begin
  new.confined := exists (select from sso_providers p
    where p.tenant_id = new.tenant_id and p.id::text = new.provider);
  return new;
end $$;
create trigger browser_sessions_confine before insert on browser_sessions
  for each row when (new.provider is not null and not new.confined)
  execute function browser_sessions_confine();

update browser_sessions s set confined = true
where s.ended_at is null and not s.confined
  and exists (select from sso_providers p where p.tenant_id = s.tenant_id and p.id::text = s.provider);
