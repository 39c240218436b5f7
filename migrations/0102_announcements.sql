-- Old processes may keep running: they announce with NOTIFY, which the same functions still do for them.

-- What processes announce to one another where NOTIFY is not used (database.announce = "table"). Each process reads new
-- rows every 250 ms.
create table announcements (
  id bigint generated always as identity primary key,
  channel text not null,
  payload text not null,
  at timestamptz not null default clock_timestamp()
);

-- The only place that announces. The setting is local to a transaction, so old processes keep using NOTIFY.
create function svc_announce(channel text, payload text) returns void language plpgsql as $$
begin
  if current_setting('svc.announce', true) = 'table' then
    insert into announcements (channel, payload) values (svc_announce.channel, svc_announce.payload);
  else
    perform pg_notify(channel, payload);
  end if;
end
$$;

create or replace function svc_announce_agent() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_standing', coalesce(new.agent_id, old.agent_id)::text);
  return null;
end
$$;

create or replace function svc_announce_egress() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_egress', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$$;

create or replace function svc_announce_person() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_standing', coalesce(new.sub, old.sub));
  return null;
end
$$;

create or replace function svc_announce_policies() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_standing', coalesce(new.tenant_id, old.tenant_id)::text);
  return null;
end
$$;

create or replace function svc_announce_secret() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_standing', coalesce(new.application_id, old.application_id)::text);
  return null;
end
$$;

create or replace function svc_announce_signing_keys() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_signing_keys', '');
  return null;
end
$$;

create or replace function svc_announce_standing() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_standing', coalesce(new.id, old.id)::text);
  return null;
end
$$;

create or replace function svc_announce_tenant() returns trigger language plpgsql as $$
begin
  perform svc_announce('svc_tenants', coalesce(new.id, old.id)::text);
  return null;
end
$$;

create or replace function svc_end_tokens_of_delegation() returns trigger language plpgsql as $$
begin
  update sessions set ended_at = new.revoked_at, ended_reason = new.revoked_reason
  where tenant_id = new.tenant_id and id = new.id and ended_at is null;
  perform svc_announce('svc_standing', new.id::text);
  return null;
end
$$;
