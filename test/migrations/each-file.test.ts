/**
 * A migration can stop after any file, and requests are served between two files. So each file alone leaves a schema whose
 * triggers and functions run. PostgreSQL looks for what a body in PL/pgSQL names only when the body runs.
 */
import { readFile } from 'node:fs/promises'
import test, { type ExecutionContext } from 'ava'
import { Client, type DatabaseError } from 'pg'
import { dumpSchema } from '../../migrations/dump.js'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import {
  MIGRATIONS_FOLDER,
  readMigrationFiles,
  requireMigratedSchema,
} from '../../storage/platform/schema-version.js'
import { formerFiles } from '../support/release/former-files.js'
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

type Trigger = { readonly table: string; readonly name: string; readonly definition: string }

/** Runs each trigger on a table with the columns of its own, and with no constraints. @returns the failures. */
async function failuresOfTriggers(client: Client): Promise<string[]> {
  const { rows } = await client.query<Trigger>(
    `select c.relname as table, t.tgname as name, pg_get_triggerdef(t.oid) as definition
     from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where not t.tgisinternal and c.relnamespace = 'public'::regnamespace`,
  )
  const failures: string[] = []
  for (const { table, name, definition } of rows) {
    const trigger = definition
      .replace(` ON public.${table} `, ' ON pg_temp.stand_in ')
      .replace(/ WHEN \(.*\) EXECUTE /s, ' EXECUTE ')
    const columns = await client.query<{ all: string }>(
      `select string_agg(format('%1$I = %1$I', attname), ', ') as all from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
      [`public.${table}`],
    )
    await client.query('begin')
    const failure = await client
      .query(
        `create temp table stand_in as select * from public.${table} limit 0;
         ${trigger};
         set constraints all immediate;
         insert into stand_in select (null::public.${table}).*;
         update stand_in set ${columns.rows[0]!.all};
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
  const found: string[] = []
  for (const [index, name] of names.entries()) {
    const only = new Set(names.slice(0, index + 1))
    t.deepEqual(await runMigrations({ url, log: silentLogger, only, finish: true }), [name])
    for (const lack of await lackedByBodies(client, later)) found.push(`${name}: ${lack}`)
    for (const failure of await failuresOfTriggers(client)) found.push(`${name}: ${failure}`)
  }
  t.deepEqual(found, [])
})

for (const [title, last] of [
  ['all', '9999'],
  ['those before 0102', '0102'],
] as const) {
  test(`a database that has ${title} of the files before they were mended gets the same schema`, async (t) => {
    const { url, superuserUrl } = await emptyDatabase(t)
    const names = (await readMigrationFiles()).map(({ name }) => name)
    const only = new Set(names.filter((name) => name < last))
    const folder = await formerFiles(t)
    await runMigrations({ url, log: silentLogger, folder, only })
    const rest = names.filter((name) => name >= last)
    t.deepEqual((await runMigrations({ url, log: silentLogger, finish: true })).sort(), rest)
    const client = await connect(superuserUrl, t)
    await t.notThrowsAsync(requireMigratedSchema(client))
    t.is(await dumpSchema(client), await readFile(new URL('schema.sql', MIGRATIONS_FOLDER), 'utf8'))
  })
}
