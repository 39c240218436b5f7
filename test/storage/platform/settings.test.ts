import test from 'ava'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { databaseUrls } from '../../../storage/platform/settings.js'

const EMBEDDED = 'postgres://embedded/svc'

function database(environment: Record<string, string>) {
  const result = loadSettings({ environment, cwd: '/nowhere' })
  if (result.tag === 'refused') throw new Error(JSON.stringify(result.failures))
  return result.settings.database
}

test('the embedded database fills every URL that is not set', (t) => {
  const urls = databaseUrls(database({}), EMBEDDED)
  t.deepEqual(new Set(Object.values(urls ?? {})), new Set([EMBEDDED]))
  t.is(Object.keys(urls ?? {}).length, 8)
})

test('a URL that is set stays, also with the embedded database', (t) => {
  const urls = databaseUrls(database({ MIGRATION_DATABASE_URL: 'postgres://m/d' }), EMBEDDED)
  t.like(urls, { runtime: EMBEDDED, migration: 'postgres://m/d', maintenance: 'postgres://m/d' })
})

test('an own URL wins over the embedded database, plane URLs over it', (t) => {
  const settings = database({
    DATABASE_URL: 'postgres://own/d',
    DATABASE_AUTH_URL: 'postgres://a/d',
  })
  t.like(databaseUrls(settings, EMBEDDED), {
    runtime: 'postgres://own/d',
    identity: 'postgres://own/d',
    listener: 'postgres://own/d',
    auth: 'postgres://a/d',
    control: 'postgres://own/d',
  })
})

test('with neither there are no URLs', (t) => t.is(databaseUrls(database({})), undefined))
