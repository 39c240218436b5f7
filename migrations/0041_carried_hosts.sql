-- Old processes may keep running: what they make outside of the rule is cut at the next change of hosts.

-- A credential that carries the token of another one is used for hosts of that one alone. Accounts that
-- named no hosts get those of the carriers of the same owner, and every carrier is cut to its account.
update vault_credentials account
set allowed_hosts = array(
  select distinct host
  from vault_credentials carrier cross join unnest(carrier.allowed_hosts) host
  where carrier.tenant_id = account.tenant_id and carrier.token_of = account.id
    and carrier.status = 'active'
    and carrier.owner_type = account.owner_type and carrier.owner_id = account.owner_id
  order by host)
where account.credential_type = 'oauth2' and account.status = 'active'
  and account.allowed_hosts = '{}';

update vault_credentials carrier
set allowed_hosts = array(
  select host from unnest(carrier.allowed_hosts) with ordinality as h (host, place)
  where host = any(account.allowed_hosts) order by place)
from vault_credentials account
where account.tenant_id = carrier.tenant_id and account.id = carrier.token_of
  and carrier.status = 'active' and not carrier.allowed_hosts <@ account.allowed_hosts;
