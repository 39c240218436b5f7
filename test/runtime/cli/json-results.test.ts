/** `--json`: standard output is one JSON document, whatever the log says. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { readMigrationFiles } from '../../../storage/platform/schema-version.js'
import { emptyDatabase } from '../../support/storage/database.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'svc-json-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

async function json(environment: Readonly<Record<string, string>>, ...words: readonly string[]) {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...words, '--json'], {
    env: { PATH: process.env['PATH'], HOME: folder, ...environment },
    cwd: folder,
  })
  return JSON.parse(stdout) as Readonly<Record<string, unknown>>
}

test('the keys of a kms', async (t) => {
  const directory = join(folder, 'keys')
  const made = await json({}, 'kms', 'keygen', '--dir', directory)
  t.is(made['directory'], directory)
  for (const name of ['server_public_key', 'client_private_key', 'master_key'])
    t.true(existsSync(String(made[`${name}_path`])), name)
  const added = await json({}, 'kms', 'rotate', '--keys', directory)
  t.is(added['version'], 2)
  t.regex(String(added['master_key_id']), /^2-[0-9a-f]{16}$/)
})

test('migrations, with the log of each', async (t) => {
  const { url } = await emptyDatabase(t)
  const files = (await readMigrationFiles()).map(({ name }) => name)
  const environment = { DATABASE_URL: url }
  t.deepEqual((await json(environment, 'migrate', 'up', '--dry-run'))['pending'], files)
  t.deepEqual((await json(environment, 'migrate'))['applied'], files)
  t.deepEqual((await json(environment, 'migrate', 'up'))['applied'], [])
  t.deepEqual((await json(environment, 'migrate', 'finish'))['applied'], [])
  t.like(await json({}, 'migrate'), { applied: [], embedded: true })
})

test('the health of a service', async (t) => {
  const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  t.like(await json({ SVC_SERVER__PORT: String(port) }, 'health', '--probe', 'live'), {
    probe: 'live',
    status: 200,
  })
})
