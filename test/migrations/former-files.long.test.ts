/** Databases that ran files of migrations before those were mended. */
import { readFile } from 'node:fs/promises'
import test from 'ava'
import { Client } from 'pg'
import { dumpSchema } from '../support/storage/dump-schema.js'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import {
  MIGRATIONS_FOLDER,
  readMigrationFiles,
  requireMigratedSchema,
} from '../../storage/platform/schema-version.js'
import { formerFiles } from '../support/release/former-files.js'
import { emptyDatabase } from '../support/storage/database.js'

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
    const client = new Client({ connectionString: superuserUrl })
    await client.connect()
    t.teardown(() => client.end())
    await t.notThrowsAsync(requireMigratedSchema(client))
    t.is(await dumpSchema(client), await readFile(new URL('schema.sql', MIGRATIONS_FOLDER), 'utf8'))
  })
}
