/** Writes migrations/schema.sql after a migration was added. */
import { writeFile } from 'node:fs/promises'
import { Client } from 'pg'
import { dumpSchema } from './dump-schema.js'
import { MIGRATIONS_FOLDER } from '../../../storage/platform/schema-version.js'
import { freshDatabase } from './database.js'

const fresh = await freshDatabase()
const client = new Client({ connectionString: fresh.superuserUrl })
await client.connect()
await writeFile(new URL('schema.sql', MIGRATIONS_FOLDER), await dumpSchema(client))
await client.end()
await fresh.drop()
