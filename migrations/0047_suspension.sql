-- Old processes may keep running: only adds columns with defaults and triggers. An old process refuses a
-- suspended tenant; it does not look at suspended accounts behind tokens.

-- An operator suspends a tenant, or the organization that it belongs to. `status` is what both come to, so
-- that every check of a tenant asks one column.
alter table tenants add column suspended_at timestamptz;
-- Where people of the organization find help. Its tenants show it unless they have a contact of their own.
alter table organizations add column support_contact text;

-- Also keeps what hosted pages show: they read the settings of a tenant and nothing else of it.
create function svc_tenant_inherits() returns trigger language plpgsql as $$
declare
  parent record;
  contact text;
begin
  if tg_op = 'INSERT' then
    -- Ordered against the suspension of the organization: it waits, and then finds this tenant.
    select status, support_contact into parent
      from organizations where id = new.organization_id for share;
  else
    select status, support_contact into parent from organizations where id = new.organization_id;
  end if;
  new.status := case when new.suspended_at is not null or parent.status = 'suspended'
    then 'suspended' else 'active' end;
  contact := coalesce(new.support_contact, parent.support_contact);
  new.settings := case when contact is null then new.settings - 'support_contact'
    else new.settings || jsonb_build_object('support_contact', contact) end;
  return new;
end
$$;
create trigger tenants_inherit before insert or update of suspended_at, support_contact on tenants
  for each row execute function svc_tenant_inherits();

create function svc_tenants_follow() returns trigger language plpgsql as $$
begin
  update tenants set suspended_at = suspended_at where organization_id = new.id;
  return null;
end
$$;
create trigger organizations_tenants after update of status, support_contact on organizations
  for each row execute function svc_tenants_follow();
-- Tokens that are bound to an organization end and return with it.
create trigger organizations_standing after update of status on organizations
  for each row execute function svc_announce_standing();
drop trigger tenants_standing on tenants;
create trigger tenants_standing after update of status, suspended_at or delete on tenants
  for each row execute function svc_announce_standing();

-- Whether the account behind a tenant user is active. A tenant cannot see accounts, and its own suspension
-- of the user is another thing: both have to be lifted.
alter table tenant_users add column account_active boolean not null default true;

create function svc_tenant_user_inherits() returns trigger language plpgsql as $$
declare
  account_status text;
begin
  select status into account_status from accounts where id = new.account_id for share;
  new.account_active := coalesce(account_status = 'active', true);
  return new;
end
$$;
create trigger tenant_users_inherit before insert on tenant_users
  for each row execute function svc_tenant_user_inherits();

create function svc_tenant_users_follow() returns trigger language plpgsql as $$
begin
  update tenant_users set account_active = (new.status = 'active') where account_id = new.id;
  return null;
end
$$;
create trigger accounts_tenant_users after update of status on accounts
  for each row execute function svc_tenant_users_follow();
drop trigger tenant_users_standing on tenant_users;
create trigger tenant_users_standing after update of status, account_active or delete on tenant_users
  for each row execute function svc_announce_person();

-- What is suspended now, and the contacts that are kept now.
update tenants set suspended_at = updated_at where status = 'suspended';
update tenants set support_contact = support_contact where support_contact is not null;
update accounts set status = status where status = 'suspended';
