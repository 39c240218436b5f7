-- Old processes may keep running: the trigger still judges what they post.

-- An entry has at least two lines, of its currency, that add up to zero.
create function svc_ledger_require_balance(tenant uuid, entry uuid) returns void language plpgsql as $$
declare
  lines bigint;
  total numeric;
  strange bigint;
begin
  select count(*), coalesce(sum(l.amount_minor), 0), count(*) filter (where l.currency <> e.currency)
    into lines, total, strange
    from ledger_lines l join ledger_entries e on e.tenant_id = l.tenant_id and e.id = l.entry_id
    where l.tenant_id = tenant and l.entry_id = entry;
  if lines < 2 or total <> 0 or strange > 0 then
    raise exception 'ledger entry % does not balance', entry
      using errcode = 'check_violation', constraint = 'ledger_balanced';
  end if;
end
$$;

-- The posting calls the function. The deferred triggers are a second net.
create or replace function svc_ledger_balanced() returns trigger language plpgsql as $$
begin
  perform svc_ledger_require_balance(new.tenant_id,
    case when tg_table_name = 'ledger_lines' then (to_jsonb(new) ->> 'entry_id')::uuid
         else (to_jsonb(new) ->> 'id')::uuid end);
  return null;
end
$$;
