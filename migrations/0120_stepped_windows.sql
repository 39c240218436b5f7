-- Old processes may keep running: only replaces a function, which counts as before.

-- A rate limit does not outlast its window when the clock of the database is stepped back.
create or replace function svc_take(keys text[], costs bigint[], limits bigint[], windows_secs integer[])
  returns table (asked bigint, allowed boolean, used bigint, reset_secs double precision)
  language plpgsql as $$
declare
  entry record;
begin
  for entry in
    select e.at, e.key, e.cost, e.lim, e.secs
    from unnest(keys, costs, limits, windows_secs) with ordinality as e (key, cost, lim, secs, at)
    order by e.key collate "C", e.at
  loop
    asked := entry.at;
    -- `held` is what the window has before this call: nothing once it has ended. A window that ends later than one that begins
    -- now is of a clock that was stepped back, and has ended too.
    insert into coordination_counters as c (key, used, allowed, ends_at)
    values (entry.key,
            case when entry.cost <= entry.lim then greatest(entry.cost, 0) else 0 end,
            entry.cost <= greatest(entry.lim, 0),
            clock_timestamp() + make_interval(secs => entry.secs))
    on conflict on constraint coordination_counters_pkey do update set (used, allowed, ends_at) = (
      select case when fits then greatest(held + entry.cost, 0) else held end, fits, ends
      from (select held, entry.cost <= 0 or held + entry.cost <= entry.lim as fits, ends
            from (select case when over then 0 else c.used end as held,
                         case when over then excluded.ends_at else c.ends_at end as ends
                  from (select c.ends_at not between clock_timestamp()
                          and clock_timestamp() + make_interval(secs => entry.secs + 10) as over) as a) as b) as d)
    returning c.allowed, c.used, extract(epoch from c.ends_at - clock_timestamp())
      into allowed, used, reset_secs;
    return next;
  end loop;
end
$$;
