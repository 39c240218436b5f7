-- Old processes may keep running: the trigger writes the rows of the applications that they change too.

-- Origins of redirect URIs count like listed origins: the page that receives a code may redeem it. With a free port of
-- loopback URIs the row has no port.
create function svc_redirect_origins(uris text[], any_port boolean) returns text[] language sql immutable as $$
  select coalesce(array_agg(distinct regexp_replace(o, '^(https://.+):443$', '\1')), '{}') from (
    select lower((regexp_match(u, '^(https?://[^/?#]+)', 'i'))[1]) as o from unnest(uris) u
    union
    select lower((regexp_match(u, '^(http://(localhost|127\.0\.0\.1|\[::1\]))([:/?#]|$)', 'i'))[1])
    from unnest(uris) u where any_port) origins
  where o is not null
$$;

create or replace function svc_application_origins() returns trigger language plpgsql as $$
declare
  listed text[] := new.allowed_origins || svc_redirect_origins(new.redirect_uris, new.loopback_any_port);
begin
  delete from application_origins
  where tenant_id = new.tenant_id and application_id = new.id and origin <> all (listed);
  insert into application_origins (tenant_id, application_id, origin)
  select distinct new.tenant_id, new.id, o from unnest(listed) o
  on conflict do nothing;
  return null;
end
$$;
drop trigger applications_origins_added on applications;
create trigger applications_origins_added after insert on applications
  for each row when (new.allowed_origins <> '{}' or new.redirect_uris <> '{}')
  execute function svc_application_origins();
drop trigger applications_origins_changed on applications;
create trigger applications_origins_changed
  after update of allowed_origins, redirect_uris, loopback_any_port on applications
  for each row when (old.allowed_origins <> new.allowed_origins
    or old.redirect_uris <> new.redirect_uris or old.loopback_any_port <> new.loopback_any_port)
  execute function svc_application_origins();

insert into application_origins (tenant_id, application_id, origin)
select distinct a.tenant_id, a.id, o
from applications a, unnest(svc_redirect_origins(a.redirect_uris, a.loopback_any_port)) o
on conflict do nothing;
