/**
 * The type faces of the pages: Geist and Geist Mono (SIL Open Font License 1.1), variable, Latin only. Other scripts use
 * fonts of the system. They are served by this service, so that pages load nothing from elsewhere.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { NO_CONTEXT } from '../../response/replies.js'
import { sharedBody } from '../../response/shared-body.js'
import { ownRoute, problem, type Rendered, type Route } from '../../route.js'

const FACES = [
  ['@fontsource-variable/geist', ['geist-latin', 'geist-latin-ext']],
  ['@fontsource-variable/geist-mono', ['geist-mono-latin']],
] as const

const byDigest = new Map<string, Rendered>()

/** Publishes a file under a digest of its content, so that browsers may cache it forever. */
function publish(file: URL): string {
  const body = readFileSync(file)
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16)
  byDigest.set(digest, {
    form: 'body',
    status: 200,
    contentType: 'font/woff2',
    body: sharedBody(body).body,
    cacheControl: 'public, max-age=31536000, immutable',
  })
  return `/auth/font/${digest}`
}

/** The `@font-face` rules of a package for some of its subsets, with our paths. */
function rulesOf(name: string, subsets: readonly string[]): string[] {
  const index = new URL(import.meta.resolve(`${name}/index.css`))
  const rules = readFileSync(index, 'utf8').match(/@font-face \{[^}]*\}/g) ?? []
  return subsets.map((subset) => {
    const file = `./files/${subset}-wght-normal.woff2`
    const rule = rules.find((one) => one.includes(`url(${file})`))
    if (rule === undefined) throw new Error(`${name} has no ${file}`)
    return rule.replace(file, publish(new URL(file, index)))
  })
}

/** The `@font-face` rules for the stylesheet. */
export const FONT_FACES: string = FACES.flatMap(([name, subsets]) => rulesOf(name, subsets)).join(
  '\n',
)
/** The file that every page in a Latin script needs. */
export const PRELOADED_FONT: string = /url\(([^)]+)\)/.exec(FONT_FACES)![1]!

const unknown = problem(404, 'not-found', { detail: 'There is no such font.' })
const Params = z.object({ digest: z.string().max(64) })

export const fontRoutes: readonly Route[] = [
  ownRoute({
    method: 'GET',
    path: '/auth/font/{digest}',
    operationId: 'readFont',
    summary: 'The type faces of the hosted pages',
    tags: ['Hosted pages'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    params: Params,
    responses: [{ status: 200, contentType: 'font/woff2', schema: null }, ...unknown.docs],
    answer: ({ params }) =>
      byDigest.get((params as z.infer<typeof Params>).digest) ?? unknown.render(null, NO_CONTEXT),
  }),
]
