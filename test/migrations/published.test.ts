/**
 * Deployments run the newest migration, so a published file does not change, and a new file comes after all of them
 * (storage/platform/schema-version.ts refuses to start otherwise). `RECORD_PUBLISHED=1` adds new files at the end of the list.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import test from 'ava'
import { readMigrationFiles } from '../../storage/platform/schema-version.js'

const LIST = 'test/migrations/published.txt'
const published = () => readFileSync(LIST, 'utf8').trimEnd().split('\n')

test('a published migration does not change, and a new one has a higher number', async (t) => {
  const files = await readMigrationFiles()
  const present = files.map(({ name, checksum }) => `${name} ${checksum}`)
  if (process.env['RECORD_PUBLISHED'] === '1') {
    const known = new Set(published().map((line) => line.split(' ')[0]))
    for (const [at, { name }] of files.entries())
      if (!known.has(name)) appendFileSync(LIST, `${present[at]}\n`)
  }
  t.deepEqual(
    published(),
    present,
    'a new file has the highest number: RECORD_PUBLISHED=1 lists it',
  )
})
