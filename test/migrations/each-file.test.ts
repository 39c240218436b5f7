/**
 * A migration can stop after any file, and requests are served between two files. So each file alone leaves a schema whose
 * triggers and functions run. PostgreSQL looks for what a body in PL/pgSQL names only when the body runs.
 */
import test, { type ExecutionContext } from 'ava'
import { Client, type DatabaseError } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { readMigrationFiles } from '../../storage/platform/schema-version.js'
import { NEWEST } from '../support/release/recording.js'
import { emptyDatabase, freshDatabase } from '../support/storage/database.js'

type Names = { readonly functions: ReadonlySet<string>; readonly tables: ReadonlySet<string> }

async function connect(url: string, t: ExecutionContext): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

async function namesOf(client: Client): Promise<Names> {
  const [functions, tables] = (await client.query(
    `select proname as name from pg_proc where pronamespace = 'public'::regnamespace;
     select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')`,
  )) as unknown as { rows: { name: string }[] }[]
  const set = (of: typeof functions) => new Set(of!.rows.map(({ name }) => name))
  return { functions: set(functions), tables: set(tables) }
}

/** What bodies in PL/pgSQL name and the database lacks. @param later names of the whole schema. */
async function lackedByBodies(client: Client, later: Names): Promise<string[]> {
  const now = await namesOf(client)
  const { rows } = await client.query<{ name: string; body: string }>(
    `select p.proname as name, p.prosrc as body from pg_proc p join pg_language l on l.oid = p.prolang
     where p.pronamespace = 'public'::regnamespace and l.lanname = 'plpgsql'`,
  )
  return rows.flatMap(({ name, body }) => {
    const code = body.replaceAll(/--[^\n]*/g, ' ')
    const called = [...code.matchAll(/\b(\w+)\s*\(/g)].map(([, word]) => word!)
    const used = [...code.matchAll(/\b(?:from|join|into|update)\s+(\w+)/gi)].map(([, w]) => w!)
    return [
      ...called.filter((word) => later.functions.has(word) && !now.functions.has(word)),
      ...called.filter((word) => word.startsWith('svc_') && !now.functions.has(word)),
      ...used.filter((word) => later.tables.has(word) && !now.tables.has(word)),
    ].map((word) => `${name} uses ${word}`)
  })
}

type Trigger = {
  readonly table: string
  readonly name: string
  readonly definition: string
  /** Sets each column to itself. */
  readonly same: string
}

/** Runs each trigger on a table with the columns of its table, and without constraints. @returns the failures. */
async function failuresOfTriggers(client: Client): Promise<string[]> {
  const { rows } = await client.query<Trigger>(
    `select c.relname as table, t.tgname as name, pg_get_triggerdef(t.oid) as definition,
       (select string_agg(format('%1$I = %1$I', attname), ', ') from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped) as same
     from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where not t.tgisinternal and c.relnamespace = 'public'::regnamespace`,
  )
  const failures: string[] = []
  for (const { table, name, definition, same } of rows) {
    const trigger = definition
      .replace(` ON public.${table} `, ' ON pg_temp.stand_in ')
      .replace(/ WHEN \(.*\) EXECUTE /s, ' EXECUTE ')
    const failure = await client
      .query(
        `begin;
         create temp table stand_in as select * from public.${table} limit 0;
         ${trigger};
         set constraints all immediate;
         insert into stand_in select (null::public.${table}).*;
         update stand_in set ${same};
         delete from stand_in`,
      )
      .then(
        () => null,
        (error: DatabaseError) => error,
      )
    await client.query('rollback')
    // Class 42: something is not as the body names it. 42501: the body refuses the change.
    if (/^42(?!501)/.test(failure?.code ?? '')) {
      failures.push(`${table}: ${name}: ${failure!.message}`)
    }
  }
  return failures
}

test('after each file the triggers and functions find what they name', async (t) => {
  t.timeout(300_000)
  const later = await namesOf(await connect((await freshDatabase(t)).superuserUrl, t))
  const { url, superuserUrl } = await emptyDatabase(t)
  const client = await connect(superuserUrl, t)
  const names = (await readMigrationFiles()).map(({ name }) => name)
  const only = new Set(names.slice(0, -NEWEST))
  const migrate = () => runMigrations({ url, log: silentLogger, only, finish: true })
  t.deepEqual(await migrate(), [...only])
  const found: string[] = []
  for (const name of names.slice(only.size)) {
    only.add(name)
    t.deepEqual(await migrate(), [name])
    for (const lack of await lackedByBodies(client, later)) found.push(`${name}: ${lack}`)
    for (const failure of await failuresOfTriggers(client)) found.push(`${name}: ${failure}`)
  }
  t.deepEqual(found, [])
})
