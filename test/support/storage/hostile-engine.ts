/**
 * A database that behaves as engines that only resemble PostgreSQL do: it drops NOTIFY, fails transactions with SQLSTATE 40001
 * at random, and is reached through PgBouncer in transaction mode.
 */
import { Client } from 'pg'
import { program } from '../service/program.js'
import type { FreshDatabase } from './database.js'
import { pgBouncer } from './pgbouncer.js'

/** TEST_ENGINE=hostile runs tests on such a database. */
export const IS_HOSTILE =
  process.env['TEST_ENGINE'] === 'hostile' && program('pgbouncer') !== undefined

/** One of this many statements that write fails. */
const FAILS_ONE_IN = 50

export interface HostileEngine {
  readonly environment: Readonly<Record<string, string>>
  /** How many statements failed. */
  failures(): Promise<number>
  /** What a former primary is after a switch: it accepts no writes, and closes its connections. */
  becomeReadOnly(isReadOnly: boolean): Promise<void>
  stop(): Promise<void>
}

/**
 * @param port a free port for the pooler.
 * @param seed the statements that fail follow from it.
 */
export async function hostileEngine(
  { url, superuserUrl }: FreshDatabase,
  announce: 'notify' | 'table',
  port: number,
  seed = 1,
): Promise<HostileEngine> {
  const admin = new Client({ connectionString: superuserUrl })
  await admin.connect()
  await admin.query(injection(seed))
  const pooler = await pgBouncer(url, port)
  const database = admin.escapeIdentifier(new URL(url).pathname.slice(1))
  return {
    environment: {
      DATABASE_URL: pooler.url,
      SVC_DATABASE__PREPARED_STATEMENTS: 'unnamed',
      SVC_DATABASE__ANNOUNCE: announce,
      SVC_DATABASE__LISTENER_URL: url,
      SVC_DATABASE__MIGRATION_URL: url,
    },
    async failures() {
      const { rows } = await admin.query<{ count: number }>(
        `select last_value::int - 1 as count from hostile_failures`,
      )
      return rows[0]!.count
    },
    async becomeReadOnly(isReadOnly) {
      await admin.query(
        `alter database ${database} set default_transaction_read_only = ${isReadOnly}`,
      )
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      )
    },
    async stop() {
      await pooler.stop()
      await admin.end()
    },
  }
}

/** Sequences do not roll back, so they count failed statements too. */
const injection = (seed: number) => `
  create or replace function svc_announce(channel text, payload text) returns void language plpgsql as $$
  begin
    if current_setting('svc.announce', true) = 'table' then
      insert into announcements (channel, payload) values (svc_announce.channel, svc_announce.payload);
    end if;
  end
  $$;
  create sequence hostile_statements;
  create sequence hostile_failures;
  create function hostile_statement() returns trigger language plpgsql security definer as $$
  declare
    digits text := md5(${Number(seed)} || ' ' || nextval('hostile_statements'));
  begin
    if ('x' || left(digits, 7))::bit(28)::integer % ${FAILS_ONE_IN} = 0 then
      perform nextval('hostile_failures');
      raise exception 'restart transaction' using errcode = '40001';
    end if;
    return null;
  end
  $$;
  do $$
  declare
    name text;
  begin
    for name in select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'svc_migrations'
    loop
      execute format('create trigger hostile before insert or update or delete on %I
        for each statement execute function hostile_statement()', name);
    end loop;
  end
  $$;
  select nextval('hostile_failures')`
