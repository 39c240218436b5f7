/**
 * Copies all rows of a database out of one snapshot and back. It needs no program of PostgreSQL, so a backup of the
 * embedded server and one of another server are the same (docs/guides/operations/backup.md).
 *
 * A row travels as the text of its composite value: PostgreSQL writes and reads every type in it without loss.
 */
import type { Client } from 'pg'

/** Written by the migrations themselves. */
const MIGRATIONS_TABLE = 'svc_migrations'
const ROWS_PER_FETCH = 500
/** A statement inserts at most this many rows, or one row more than this many characters. */
const ROWS_PER_INSERT = 1_000
const CHARS_PER_INSERT = 1_000_000

type TableShape = {
  readonly name: string
  /** `name type`, in their order in the composite value. */
  readonly columns: readonly string[]
}

export type SequenceState = {
  readonly name: string
  /** Decimal digits of a bigint. */
  readonly lastValue: string
  readonly isCalled: boolean
}

/**
 * Begins the snapshot that `readRows` reads. Writers continue and are not seen. Values have the text form that the load
 * expects, whatever the settings of the role or of the database are.
 */
export async function beginSnapshot(client: Client): Promise<void> {
  await client.query('begin isolation level repeatable read read only')
  await settle(client)
}

/** Session settings for lossless texts and for the sight of all tenants. */
async function settle(client: Client): Promise<void> {
  await client.query(
    `select set_config('svc.scope', 'system', true), set_config('datestyle', 'ISO, MDY', true),
       set_config('intervalstyle', 'postgres', true), set_config('timezone', 'UTC', true),
       set_config('bytea_output', 'hex', true), set_config('extra_float_digits', '1', true),
       set_config('search_path', 'public', true), set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true)`,
  )
}

/** The tables of the schema public with their columns, by name. */
export async function listTables(client: Client): Promise<TableShape[]> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `select c.relname::text as name,
       array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> $1
       and a.attnum > 0 and not a.attisdropped
     group by c.relname order by c.relname`,
    [MIGRATIONS_TABLE],
  )
  return rows
}

/** Keeps migrations out until the snapshot ends. Readers and writers continue. */
export async function lockShapes(client: Client, tables: readonly TableShape[]): Promise<void> {
  const names = tables.map(({ name }) => client.escapeIdentifier(name))
  if (names.length > 0) await client.query(`lock table ${names.join(', ')} in access share mode`)
}

/** The rows of a table as texts, a page at a time. */
export async function* readRows(client: Client, table: string): AsyncGenerator<readonly string[]> {
  const name = client.escapeIdentifier(table)
  await client.query(
    `declare backup_rows no scroll cursor for select svc_row::text as line from ${name} svc_row`,
  )
  for (;;) {
    const { rows } = await client.query<{ line: string }>(
      `fetch ${ROWS_PER_FETCH} from backup_rows`,
    )
    if (rows.length > 0) yield rows.map(({ line }) => line)
    if (rows.length < ROWS_PER_FETCH) break
  }
  await client.query('close backup_rows')
}

export async function readSequences(client: Client): Promise<SequenceState[]> {
  const { rows: names } = await client.query<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'S' order by relname`,
  )
  const states: SequenceState[] = []
  for (const { name } of names) {
    const { rows } = await client.query<Omit<SequenceState, 'name'>>(
      `select last_value::text as "lastValue", is_called as "isCalled"
       from ${client.escapeIdentifier(name)}`,
    )
    states.push({ name, ...rows[0]! })
  }
  return states
}

/** The master keys that wrap the data keys of this database. */
export async function readMasterKeyIds(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    'select distinct master_key_id as id from data_keys order by 1',
  )
  return rows.map(({ id }) => id)
}

/**
 * Replaces the rows of all tables in one transaction. Foreign keys are dropped before and created again after the rows
 * exist, and triggers do not run: the rows have their effects already. Needs the owner of the tables, no superuser.
 *
 * @param rowsOf the rows of a table, in pages.
 * @throws when a row does not fit. Nothing is changed then.
 */
export async function loadTables(
  client: Client,
  tables: readonly TableShape[],
  sequences: readonly SequenceState[],
  rowsOf: (table: string) => AsyncIterable<readonly string[]>,
): Promise<void> {
  await client.query('begin')
  try {
    await settle(client)
    const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
      `select conrelid::regclass::text as table, quote_ident(conname) as name,
         pg_get_constraintdef(oid) as definition
       from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace
       order by conrelid::regclass::text, conname`,
    )
    for (const { table, name } of keys) {
      await client.query(`alter table ${table} drop constraint ${name}`)
    }
    const names = tables.map(({ name }) => client.escapeIdentifier(name))
    for (const name of names) await client.query(`alter table ${name} disable trigger user`)
    await client.query(`truncate ${names.join(', ')}`)
    for (const { name } of tables) await loadTable(client, name, rowsOf(name))
    for (const { name, lastValue, isCalled } of sequences) {
      await client.query('select setval($1::regclass, $2::bigint, $3)', [
        client.escapeIdentifier(name),
        lastValue,
        isCalled,
      ])
    }
    for (const name of names) await client.query(`alter table ${name} enable trigger user`)
    for (const { table, name, definition } of keys) {
      await client.query(`alter table ${table} add constraint ${name} ${definition}`)
    }
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
  await client.query('analyze').catch(() => undefined)
}

async function loadTable(
  client: Client,
  table: string,
  pages: AsyncIterable<readonly string[]>,
): Promise<void> {
  const { rows } = await client.query<{ list: string }>(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as list from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [client.escapeIdentifier(table)],
  )
  const list = rows[0]!.list
  const name = client.escapeIdentifier(table)
  let held: string[] = []
  let chars = 0
  const insert = async () => {
    if (held.length === 0) return
    await client.query(
      `insert into ${name} (${list}) overriding system value
       select ${list} from unnest($1::${name}[])`,
      [held],
    )
    held = []
    chars = 0
  }
  for await (const page of pages) {
    for (const line of page) {
      held.push(line)
      chars += line.length
      if (held.length >= ROWS_PER_INSERT || chars > CHARS_PER_INSERT) await insert()
    }
  }
  await insert()
}

/** True if the schema public has tables. */
export async function hasTables(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    `select exists (select from pg_class where relnamespace = 'public'::regnamespace
       and relkind in ('r', 'p', 'v', 'm')) as there`,
  )
  return rows[0]!.there
}

/** Drops the tables and functions of the schema public, in one transaction. */
export async function dropSchema(client: Client): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select format('drop table if exists %s cascade', oid::regclass) as statement from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
     union all
     select format('drop function if exists %s cascade', p.oid::regprocedure) from pg_proc p
     where p.pronamespace = 'public'::regnamespace
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')`,
  )
  await client.query('begin')
  try {
    for (const { statement } of rows) await client.query(statement)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Other connections of a service to this database. */
export async function countServiceConnections(client: Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()
       and application_name like 'svc%' and application_name not in ('svc backup', 'svc restore')`,
  )
  return rows[0]!.n
}
