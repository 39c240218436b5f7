/** The version of the package, its changelog and its upgrade notes are one. */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { openapiDocument } from '../../../../gateway/apps/openapi/openapi.js'
import { RELEASE_VERSION } from '../../../../gateway/request/interface-version.js'

const versions = [
  ...readFileSync('CHANGELOG.md', 'utf8').matchAll(
    /^## (\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)$/gm,
  ),
].map(([, version, date]) => ({ version: version!, date: date! }))

test('changelog and package have the same newest version', (t) => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    version: string
    packages: Record<string, { version: string }>
  }
  t.is(versions[0]?.version, version)
  t.is(lock.version, version)
  t.is(lock.packages['']?.version, version)
  t.is(RELEASE_VERSION, version)
  const info = (exposure: 'public' | 'internal') =>
    (openapiDocument({ issuer: 'https://id.test', exposure, routes: [] }) as { info: object }).info
  t.like(info('internal'), { 'x-release': version })
  t.false('x-release' in info('public'))
  const rank = (text: string) => text.split('.').reduce((sum, part) => sum * 1000 + Number(part), 0)
  const ranks = versions.map((each) => rank(each.version))
  t.deepEqual(
    ranks,
    ranks.toSorted((a, b) => b - a),
    'the newest comes first',
  )
})

test('every version of the changelog has upgrade notes', (t) => {
  const page = readFileSync('docs/guides/operations/upgrade.md', 'utf8')
  t.true(versions.length > 0)
  for (const { version } of versions) {
    const notes = page.split(`\n### ${version}\n`)[1]?.split(/\n##/)[0] ?? ''
    for (const part of ['Breaking', 'Steps', 'Time', 'Roll back'])
      t.true(notes.includes(`| ${part} |`), `${version}: ${part}`)
  }
})
