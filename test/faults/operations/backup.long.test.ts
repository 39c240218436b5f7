/** Own service: it destroys its database. */
/** The drill of docs/guides/operations/backup.md: back up under load, destroy, restore, use. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { dumpSchema } from '../../support/storage/dump-schema.js'
import { backUp } from '../../../runtime/process/backup/backup.js'
import { readManifest, verifyFiles } from '../../../runtime/process/backup/manifest.js'
import { restore } from '../../../runtime/process/backup/restore.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { processesOf, svc } from '../../flows/vault/command.js'
import { apiOf } from '../../support/api.js'
import { bootstrap, callerOf, demand, type Json, login } from '../../support/agents/journey.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { openBrowser } from '../../support/pages/browser.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'
import { until } from '../../support/service/watch.js'
import { emptyDatabase, freshDatabase } from '../../support/storage/database.js'

const SECRET = 'sk_live_of_the_drill'

function folderOf(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-backup-'))
  // The server of the embedded database runs as another user.
  chmodSync(folder, 0o711)
  t.teardown(() => {
    for (const line of processesOf(folder)) process.kill(Number.parseInt(line, 10), 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

async function ran(
  t: ExecutionContext,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const command = svc(t, { args, environment })
  const code = await command.ended()
  return { code, output: command.output() }
}

test('a deployment is backed up under load, destroyed, restored and used', async (t) => {
  const folder = folderOf(t)
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  const environmentOf = (name: string) => ({
    SVC_DATA_DIR: join(folder, name),
    SVC_SERVER__PORT: String(port),
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
    SVC_CHALLENGE__POW_DIFFICULTY_BITS: '4',
    SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
  })
  const before = environmentOf('before')
  const service = svc(t, { environment: before })
  await service.ready()
  const http = callerOf(baseUrl)
  const space = await bootstrap(http)
  const bearer = { authorization: `Bearer ${space.accessToken}` }
  const person = await bootstrapped({ baseUrl, ca: undefined })
  const credential = demand(
    await http.post(
      '/api/v1/vault/credentials',
      {
        provider: 'drill',
        credential_type: 'api_key',
        label: 'Drill',
        auth_scheme: 'bearer',
        allowed_hosts: ['api.example.com'],
        non_exportable: false,
        secret: SECRET,
      },
      bearer,
    ),
    201,
  )
  const secretPath = `/api/v1/vault/credentials/${String(credential.body['id'])}/secret`
  const jwks = (await http.call('/.well-known/jwks.json')).text

  const created: string[] = []
  const ended = new AbortController()
  const load = (async () => {
    for (let n = 0; !ended.signal.aborted; n += 1) {
      const application = { name: `drill-${n}`, redirect_uris: ['https://app.example/cb'] }
      demand(await http.post('/api/v1/applications', application, bearer), 201)
      created.push(application.name)
    }
  })()
  await until('the load', () => created.length > 3)
  const acknowledged = [...created]
  const backup = join(folder, 'backup')
  const made = await ran(t, ['backup', '--to', backup], before)
  t.is(made.code, 0, made.output)
  t.regex(made.output, /Backed up \d+ rows/)
  ended.abort()
  await load
  const again = await ran(t, ['backup', '--to', backup], before)
  t.is(again.code, 1, 'a backup never replaces another')

  const onto = await ran(t, ['restore', '--from', backup, '--force'], before)
  t.is(onto.code, 1, 'a running service')
  t.regex(onto.output, /is in use by another svc/)
  service.child.kill('SIGKILL')
  await service.ended()
  for (const line of processesOf(before.SVC_DATA_DIR)) {
    process.kill(Number.parseInt(line, 10), 'SIGKILL')
  }
  rmSync(before.SVC_DATA_DIR, { recursive: true, force: true })

  const after = environmentOf('after')
  const verified = await ran(t, ['restore', '--from', backup, '--verify', '--json'], after)
  t.is(verified.code, 0, verified.output)
  const restored = await ran(t, ['restore', '--from', backup], after)
  t.is(restored.code, 0, restored.output)
  const twice = await ran(t, ['restore', '--from', backup], after)
  t.is(twice.code, 1)
  t.regex(twice.output, /is not empty: --force/)

  const revived = svc(t, { environment: after })
  await revived.ready()
  t.is((await http.call('/.well-known/jwks.json')).text, jwks, 'the same signing keys')
  const browser = openBrowser({ baseUrl, ca: undefined })
  const entered = await browser.follow(await signIn(browser, person))
  t.is(entered.status, 200)
  t.is(entered.path, '/auth/account', 'signed in with the password')
  t.is(demand(await http.call(secretPath, { headers: bearer }), 200).body['secret'], SECRET)
  const listed = await http.call('/api/v1/applications?limit=100', { headers: bearer })
  const names = new Set((JSON.parse(listed.text) as Json[]).map(({ name }) => name))
  const lost = acknowledged.filter((name) => !names.has(name))
  t.deepEqual(lost, [], 'what was acknowledged before the backup began')
  const chain = demand(await http.call('/api/v1/audit-events/verify', { headers: bearer }), 200)
  t.like(chain.body, { valid: true })
  t.true(Number(chain.body['events']) > acknowledged.length)
  const fresh = demand(await login(http, space), 200)
  t.is(fresh.body['agent_id'], space.agentId)
  revived.child.kill('SIGTERM')
  t.is(await revived.ended(), 0)
})

/** Digests of all rows, by table. */
async function digest(url: string): Promise<Record<string, string>> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select relname as name from pg_class
       where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'svc_migrations'`,
    )
    const digests: Record<string, string> = {}
    for (const { name } of tables) {
      const { rows } = await client.query<{ d: string }>(
        `select count(*) || ' ' || coalesce(md5(string_agg(md5(x::text), '' order by x::text)), '') as d
         from public.${name} x`,
      )
      digests[name] = rows[0]!.d
    }
    return digests
  } finally {
    await client.end()
  }
}

async function schemaOf(url: string) {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const disabled = await client.query(
      `select tgname from pg_trigger where tgenabled <> 'O' and not tgisinternal`,
    )
    return { schema: await dumpSchema(client), disabled: disabled.rows }
  } finally {
    await client.end()
  }
}

test('a backup of a configured database and kms restores every row', async (t) => {
  const folder = folderOf(t)
  const running = await ownService()
  t.teardown(() => running.end())
  const api = apiOf(running)
  t.teardown(() => api.close())
  const { token } = await api.workspace()
  const text = 'quotes " and \\ back\\slashes, commas; {braces} \n lines, ünïcode 🎉'
  await api
    .post('/api/v1/vault/credentials', token, {
      provider: 'rows',
      credential_type: 'api_key',
      label: 'Rows',
      auth_scheme: 'bearer',
      allowed_hosts: ['api.example.com'],
      secret: SECRET,
      metadata: { text, nothing: null, list: [1.5, 1e-7, 'null'] },
    })
    .gives(201)
  await running.service.stop()
  const keysFolder = dirname(running.kms.environment['SVC_KMS__CLIENT_PRIVATE_KEY_PATH']!)
  const source = {
    ...running.kms.environment,
    DATABASE_URL: running.db.url,
    SVC_OIDC__ISSUER_URL: running.issuer,
  }
  const backup = join(folder, 'backup')
  const unnamed = await ran(t, ['backup', '--to', backup], source)
  t.is(unnamed.code, 1)
  t.regex(unnamed.output, /name its folder \(--keys DIR\)/)
  const done = await ran(t, ['backup', '--to', backup, '--keys', keysFolder, '--json'], source)
  t.is(done.code, 0, done.output)
  const before = await digest(running.db.superuserUrl)
  t.true(Object.keys(before).length > 60)

  const target = await emptyDatabase(t)
  const there = { ...source, DATABASE_URL: target.url }
  const keys = join(folder, 'keys')
  const restored = await ran(t, ['restore', '--from', backup, '--keys', keys], there)
  t.is(restored.code, 0, restored.output)
  const after = await digest(target.superuserUrl)
  // The restore itself is audited.
  delete before['unnumbered_events']
  const recorded = after['unnumbered_events']
  delete after['unnumbered_events']
  t.deepEqual(after, before)
  t.regex(recorded ?? '', /^1 /)
  t.deepEqual(await schemaOf(target.superuserUrl), await schemaOf(running.db.superuserUrl))
  const master = 'master-1.key'
  t.is(readFileSync(join(keys, master), 'utf8'), readFileSync(join(keysFolder, master), 'utf8'))

  // A database that has something is replaced only with --force, and keys are kept aside.
  const refused = await ran(t, ['restore', '--from', backup, '--without-keys'], there)
  t.is(refused.code, 1)
  t.regex(refused.output, /the database is not empty/)
  const forced = await ran(
    t,
    ['restore', '--from', backup, '--keys', keys, '--force', '--json'],
    there,
  )
  t.is(forced.code, 0, forced.output)
  t.regex(forced.output, /keys\.replaced-\d{8}T\d{6}/)
})

test('a damaged backup, or one without its keys, changes nothing', async (t) => {
  const folder = folderOf(t)
  const running = await ownService()
  t.teardown(() => running.end())
  const environment = { DATABASE_URL: running.db.url, SVC_OIDC__ISSUER_URL: running.issuer }
  const backup = join(folder, 'backup')
  const keysFolder = dirname(running.kms.environment['SVC_KMS__CLIENT_PRIVATE_KEY_PATH']!)
  const made = await ran(t, ['backup', '--to', backup, '--keys', keysFolder], environment)
  t.is(made.code, 0, made.output)

  const target = await emptyDatabase(t)
  const there = { ...environment, DATABASE_URL: target.url }
  const restoring = (...more: string[]) => ran(t, ['restore', '--from', backup, ...more], there)
  const keys = join(folder, 'keys')
  const refusedWith = async (words: RegExp) => {
    const { code, output } = await restoring('--keys', keys)
    t.is(code, 1)
    t.regex(output, words)
    t.deepEqual(await digest(target.superuserUrl), {})
  }
  const changed = async (path: string, change: (bytes: Buffer) => Buffer, words: RegExp) => {
    const whole = readFileSync(join(backup, path))
    writeFileSync(join(backup, path), change(Buffer.from(whole)))
    await refusedWith(words)
    writeFileSync(join(backup, path), whole)
  }
  const flipped = (bytes: Buffer) => {
    bytes[bytes.length - 9]! ^= 1
    return bytes
  }
  await changed('database/tenants.jsonl.gz', flipped, /tenants\.jsonl\.gz .* checksum differs/)
  await changed('keys/master-1.key', flipped, /master-1\.key .* checksum differs/)
  const edit = (from: RegExp, to: string) => (bytes: Buffer) =>
    Buffer.from(bytes.toString('utf8').replace(from, to))
  const step = edit(/"database\/tenants\.jsonl\.gz"/, '"../tenants.jsonl.gz"')
  await changed('manifest.json', step, /manifest\.json/)
  const later = edit(/"0001_foundation"/, '"9999_of_a_later_version"')
  await changed('manifest.json', later, /9999_of_a_later_version, which this build does not have/)
  const other = edit(/"master_key_ids": \[[^\]]*\]/, '"master_key_ids": ["mk-other"]')
  await changed('manifest.json', other, /lacks the master keys mk-other/)
  const whole = await restoring('--keys', keys)
  t.is(whole.code, 0, whole.output)
})

test('images of tenants in a folder are part of the backup', async (t) => {
  const folder = folderOf(t)
  const source = await freshDatabase(t)
  const images = join(folder, 'images')
  mkdirSync(join(images, 'tenant'), { recursive: true })
  writeFileSync(join(images, 'tenant', 'logo.png'), Buffer.from([137, 80, 78, 71]))
  const backup = join(folder, 'backup')
  const manifest = await backUp({
    progress: () => undefined,
    to: backup,
    connection: { connectionString: source.url },
    keysFolder: null,
    assetsFolder: images,
    version: '0',
    issuer: 'https://id.example.com',
    roles: [],
  })
  t.deepEqual(
    manifest.assets?.map(({ path, bytes }) => [path, bytes]),
    [['assets/tenant/logo.png', 4]],
  )
  t.is(await verifyFiles(backup, await readManifest(backup)), manifest.database.tables.length + 1)
  const target = await emptyDatabase(t)
  const restored = join(folder, 'restored')
  await restore({
    progress: () => undefined,
    from: backup,
    manifest,
    connection: { connectionString: target.url },
    migration: { url: target.url, log: silentLogger },
    keysFolder: null,
    assetsFolder: restored,
    isForced: false,
  })
  t.deepEqual([...readFileSync(join(restored, 'tenant', 'logo.png'))], [137, 80, 78, 71])
})
