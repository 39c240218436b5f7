/** Proxies in front of several processes, and the page about planes, know every path. */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { planesOfPaths, readPlanesPage } from '../support/fleet/route-planes.js'

/** The map of nginx: the first pattern that fits, else the default. */
function mapOf(text: string): (path: string) => string {
  const inside = /map \$uri \$svc_plane \{(.*?)\n {2}\}/s.exec(text)?.[1] ?? ''
  const rows = [...inside.matchAll(/^\s+(\S+)\s+svc_(\w+);/gm)].map(([, key = '', plane = '']) => ({
    key,
    plane,
  }))
  const fallback = rows.find(({ key }) => key === 'default')!.plane
  return (path) =>
    rows.find(({ key }) => key.startsWith('~') && new RegExp(key.slice(1)).test(path))?.plane ??
    fallback
}

test('nginx sends every path to a plane that serves it', (t) => {
  const file = new URL('../../../deploy/proxies/nginx-several.conf', import.meta.url)
  const planeOf = mapOf(readFileSync(file, 'utf8'))
  t.is(planeOf('/api/v1/agents/me'), 'auth')
  t.is(planeOf('/api/v1/agents/meter'), 'control')
  for (const [path, planes] of planesOfPaths()) {
    t.true(planes.length > 0, `${path}: its methods are served by different planes`)
    const asked = path.replaceAll(/\{[^}]+\}/g, '0191e2a0-0000-7000-8000-000000000000')
    const chosen = planeOf(asked)
    t.true((planes as readonly string[]).includes(chosen), `${path}: ${chosen}, not ${planes}`)
  }
})

test('docs/reference/planes.md lists every path', (t) => {
  const { text, written } = readPlanesPage()
  t.is(text, written, 'npx tsc -b && node dist/test/support/fleet/write-planes-page.js')
})
