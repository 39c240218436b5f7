import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Command } from 'commander'
import { carryOut } from '../../../actors/oauth/signing-keys/rotation.js'
import { planMaintenance } from '../../../actors/oauth/signing-keys/rules.js'
import { runMigrations } from '../../../migrations/main.js'
import { openKeyTools } from '../../../runtime/cli/key-tools.js'
import { keysCommand } from '../../../runtime/cli/keys.js'
import { startLocalKms } from '../../../runtime/process/embedded-kms.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { rotateMasterKey } from '../../../storage/platform/kms/key-directory.js'
import { freshDatabase } from '../../support/storage/database.js'

const log = silentLogger
type Environment = Record<string, string>

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-cli-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

/** Runs `svc keys ...` like an operator, in this process. */
async function svcKeys(environment: Environment, ...words: string[]) {
  const said = { out: '', err: '', code: 0 }
  const program = new Command('svc')
  keysCommand(program, {
    open: () => openKeyTools({ environment, cwd: tmpdir(), uid: process.getuid?.() }),
    out: (text) => {
      said.out += text
    },
    err: (text) => {
      said.err += text
    },
    exitWith: (code) => {
      said.code = code
    },
  })
  await program.parseAsync(['keys', ...words], { from: 'user' })
  return said
}

/** The first start of a service some days ago. */
async function firstStart(environment: Environment, daysAgo: number): Promise<void> {
  const resources = await openKeyTools({ environment, cwd: tmpdir() })
  const then = new Date(Date.now() - daysAgo * 86_400_000)
  await carryOut(resources, then, (rows) => planMaintenance(rows, then, 30))
  await resources.close()
}

type Listed = {
  signing_keys: { kid: string; algorithm: string; state: string }[]
  data_keys: { master_key_id: string; data_keys: number }[]
}
async function listed(environment: Environment): Promise<Listed> {
  const { out, err, code } = await svcKeys(environment, 'list', '--json')
  if (code !== 0) throw new Error(err)
  return JSON.parse(out)
}
const currentOf = ({ signing_keys }: Listed, algorithm: string) =>
  signing_keys.find((key) => key.algorithm === algorithm && key.state === 'current')?.kid

test('svc keys lists, rotates and rewraps through a configured database and kms', async (t) => {
  const dataDir = await folder(t)
  const { url } = await freshDatabase(t)
  const local = await startLocalKms({ dataDir, log })
  t.teardown(() => local.stop())
  const environment = {
    SVC_DATA_DIR: dataDir,
    DATABASE_URL: url,
    SVC_KMS__SOCKET_PATH: local.settings.socket_path,
    SVC_KMS__SERVER_PUBLIC_KEY_PATH: local.settings.server_public_key_path,
    SVC_KMS__CLIENT_PRIVATE_KEY_PATH: local.settings.client_private_key_path,
  }
  await firstStart(environment, 1)
  const before = await listed(environment)
  t.is(before.signing_keys.length, 4)
  t.is(before.data_keys.length, 1)
  const table = await svcKeys(environment, 'list')
  t.true(table.out.includes(currentOf(before, 'ES256')!))
  t.regex(table.out, /The kms is available\. It wraps with 1-[0-9a-f]{16}\./)

  t.is((await svcKeys(environment, 'rotate', '--algorithm', 'es256')).err, '')
  const after = await listed(environment)
  t.is(after.signing_keys.length, 5)
  t.not(currentOf(after, 'ES256'), currentOf(before, 'ES256'))
  t.is(currentOf(after, 'EdDSA'), currentOf(before, 'EdDSA'))

  const again = await svcKeys(environment, 'rotate', '--algorithm', 'ES256')
  t.is(again.code, 1)
  t.regex(again.err, /try again in \d+ s/)
  const withdrawn = currentOf(after, 'ES256')
  t.is((await svcKeys(environment, 'rotate', '--algorithm', 'ES256', '--compromised')).code, 0)
  const last = await listed(environment)
  t.false(last.signing_keys.some(({ kid }) => kid === withdrawn))

  t.regex((await svcKeys(environment, 'rotate-data')).err, /name --tenant <id> or --all/)
  const unknown = ['--tenant', '0198a000-0000-7000-8000-000000000000']
  t.is((await svcKeys(environment, 'rotate-data', ...unknown)).code, 1)
  t.is(
    (await svcKeys(environment, 'reseal')).out,
    '0 values were sealed again; 0 rotations are not finished yet.',
  )
  t.regex((await svcKeys(environment, 'rotate-data', '--all')).out, /^1 data keys were created/)
  t.is((await listed(environment)).data_keys[0]!.data_keys, 2)
  // The private signing keys of the service itself.
  const resealed = await svcKeys(environment, 'reseal')
  t.regex(resealed.out, /^[1-9]\d* values were sealed again; 1 rotations are not finished yet\.$/)
  const early = (await svcKeys(environment, 'rewrap')).out
  await rotateMasterKey(join(dataDir, 'kms', 'keys'), systemRandom(systemClock))
  const deadlineMs = performance.now() + 15_000
  let said = ''
  while (!said.startsWith('2 ') && performance.now() < deadlineMs) {
    said = (await svcKeys(environment, 'rewrap')).out
  }
  t.regex(said, /^2 data keys were wrapped again\. All are wrapped by 2-[0-9a-f]{16} now\.$/)
  // Before the kms has the new key, the output still names the old one.
  t.regex(early, /^0 data keys were wrapped again\. All are wrapped by 1-[0-9a-f]{16} now\.$/)
  t.regex((await listed(environment)).data_keys[0]!.master_key_id, /^2-/)
  t.is((await svcKeys(environment, 'rotate', '--algorithm', 'RS512')).code, 1)

  const json = async (...words: string[]): Promise<unknown> =>
    JSON.parse((await svcKeys(environment, ...words, '--json')).out)
  t.deepEqual(await json('rotate', '--compromised'), { replaced: 2 })
  t.deepEqual(await json('rotate-data', '--all'), { created: 1 })
  t.like(await json('reseal'), { unfinished_rotations: 2, broken: 0 })
  const { signing_keys } = await listed(environment)
  t.is(signing_keys.filter(({ state }) => state === 'current').length, 2)
  t.like(await json('rewrap'), { wrapped_again: 0 })
})

test('svc keys works on the embedded database, with and without a running service', async (t) => {
  const dataDir = await folder(t)
  const environment = { SVC_DATA_DIR: dataDir }
  const server = await startEmbeddedPostgres({ dataDir, log, durable: false })
  let local: Awaited<ReturnType<typeof startLocalKms>> | undefined
  try {
    await runMigrations({ url: server.url, log })
    local = await startLocalKms({ dataDir, log })
    await firstStart(environment, 1)
    const others = await listed(environment)
    t.is(others.signing_keys.length, 4)
    t.is((await svcKeys(environment, 'rotate')).err, '')
    t.true(local.pid() !== undefined, 'the kms of the service is left alone')
  } finally {
    await local?.stop()
    await server.stop()
  }
  t.is((await listed(environment)).signing_keys.length, 6)
})

test('svc keys works on an external database with local keys, without a running service', async (t) => {
  const dataDir = await folder(t)
  const { url } = await freshDatabase(t)
  const environment = { SVC_DATA_DIR: dataDir, DATABASE_URL: url }
  await firstStart(environment, 1)
  t.is((await listed(environment)).signing_keys.length, 4)
})

test('svc keys reports missing keys and creates none', async (t) => {
  const dataDir = await folder(t)
  const kmsAway = {
    SVC_KMS__SOCKET_PATH: join(dataDir, 'kms.sock'),
    SVC_KMS__SERVER_PUBLIC_KEY_PATH: join(dataDir, 'server.public'),
    SVC_KMS__CLIENT_PRIVATE_KEY_PATH: join(dataDir, 'client.private'),
  }
  const { url } = await freshDatabase(t)
  const withoutKms = await svcKeys({ SVC_DATA_DIR: dataDir, DATABASE_URL: url, ...kmsAway }, 'list')
  t.is(withoutKms.code, 1)
  t.regex(withoutKms.err, /server\.public|client\.private/)
  const refused = await svcKeys({ SVC_DATA_DIR: dataDir, SVC_JWT__KEY_ROTATION_DAYS: '0' }, 'list')
  t.is(refused.code, 1)
  t.regex(refused.err, /key_rotation_days/)
})
