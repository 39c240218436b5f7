/** Which planes serve a path, and the page that lists them. */
import { readFileSync } from 'node:fs'
import { routes } from '../../../gateway/route-table.js'
import { placements, type RunPlane } from '../../../runtime/process/planes.js'

const PAGE = new URL('../../../../docs/reference/planes.md', import.meta.url)
const START = '<!-- written by: node dist/test/support/fleet/write-planes-page.js -->'

/** Paths whose route is made by the gateway, with the planes that have what it needs. */
const OF_GATEWAY: Readonly<Record<string, readonly RunPlane[]>> = {
  '/console': ['control'],
  '/mcp': ['auth'],
  '/api/v1/capabilities': ['auth', 'control', 'async'],
  '/openapi.json': ['auth', 'control', 'async'],
  '/metrics': ['auth', 'control', 'async'],
}

/** Every path of the service with the planes that serve it. */
export function planesOfPaths(): ReadonlyMap<string, readonly RunPlane[]> {
  const byActor = new Map(
    placements.map(({ definition, planes }) => [definition.address.name, planes]),
  )
  const found = new Map<string, readonly RunPlane[]>(Object.entries(OF_GATEWAY))
  for (const { path, target } of routes) {
    const all = target.via === 'actor' ? byActor.get(target.address.name) : undefined
    if (target.via === 'actor' && all === undefined) throw new Error(`${path} has no placement`)
    const isProbe = path.startsWith('/health/')
    const planes = (all ?? ['auth', 'control']).filter((plane) => plane !== 'async' || isProbe)
    const earlier = found.get(path) ?? planes
    found.set(
      path,
      earlier.filter((plane) => planes.includes(plane)),
    )
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The page up to its lists, as it is. */
export function readPlanesPage(): {
  readonly page: URL
  readonly text: string
  readonly written: string
} {
  const text = readFileSync(PAGE, 'utf8')
  const head = text.slice(0, text.indexOf(START) + START.length)
  const paths = [...planesOfPaths()]
  const listed = (title: string, serves: (planes: readonly RunPlane[]) => boolean) => {
    const lines = paths.filter(([, planes]) => serves(planes)).map(([path]) => `- \`${path}\``)
    return `## ${title}\n\n${lines.join('\n')}\n`
  }
  const has = (plane: RunPlane) => (planes: readonly RunPlane[]) => planes.includes(plane)
  const [auth, control, background] = [has('auth'), has('control'), has('async')]
  const lists = [
    listed('On every plane', background),
    listed('auth and control', (one) => auth(one) && control(one) && !background(one)),
    listed('auth alone', (one) => auth(one) && !control(one)),
    listed('control alone', (one) => control(one) && !auth(one)),
  ]
  return { page: PAGE, text, written: `${head}\n\n${lists.join('\n')}` }
}
