/** The documentation of the project as Markdown, for programs that read it: docs/ of the source tree. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import Negotiator from 'negotiator'
import { z } from 'zod'
import { type SharedBody, sharedBody } from '../../response/shared-body.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { ownRoute, problem, type Rendered, type ResponseDoc, type Route } from '../../route.js'

export const DOCUMENTATION_FOLDER = fileURLToPath(new URL('../../../../docs/', import.meta.url))
const MAX_AGE_SECS = 3_600
export const DOCUMENTATION = '/documentation'

export const TextHeaders = z.object({ accept: z.string().max(1024).optional() })

/** A text is Markdown for programs. Browsers get plain text, because they save Markdown as a file. */
export const MARKDOWN_DOCS: readonly ResponseDoc[] = [
  { status: 200, contentType: 'text/markdown', schema: null },
  { status: 200, contentType: 'text/plain', schema: null },
]

/** @param preferred the type for clients that accept any type */
export function textType(
  accept: string | undefined,
  preferred: 'text/markdown' | 'text/plain',
): string {
  const isBrowser = accept !== undefined && /\btext\/html\b/i.test(accept)
  const other = preferred === 'text/markdown' ? 'text/plain' : 'text/markdown'
  const offers = isBrowser ? ['text/plain', 'text/markdown'] : [preferred, other]
  const chosen = new Negotiator({ headers: { accept: accept ?? '*/*' } }).mediaType(offers)
  return `${chosen ?? offers[0]!}; charset=utf-8`
}

/** A text with an entity tag. `Vary` names the header that its type depends on. */
export function textBody(
  { body, etag }: SharedBody,
  contentType: string,
  maxAgeSecs: number,
): Extract<Rendered, { form: 'body' }> {
  return {
    form: 'body',
    status: 200,
    contentType,
    body,
    headers: { vary: 'Accept' },
    // The same text has two types.
    etag: contentType.startsWith('text/markdown') ? etag.replace(/"$/, '-md"') : etag,
    cacheControl: `public, max-age=${maxAgeSecs}`,
  }
}

/** The paths of all pages below docs/, with slashes. Empty if the folder is not installed. */
export function documentationPages(): readonly string[] {
  if (!existsSync(DOCUMENTATION_FOLDER)) return []
  return readdirSync(DOCUMENTATION_FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.split(sep).join('/'))
    .toSorted()
}

const unknown = problem(404, 'not-found', { detail: 'There is no such page.' })
const part = z.string().max(100)
const DEPTHS = [['page'], ['group', 'page'], ['group', 'area', 'page']] as const

/** GET /documentation/...: one route for each depth of the folder. */
export function documentationRoutes(): readonly Route[] {
  const pages = new Set(documentationPages())
  if (pages.size === 0) return []
  const texts = new Map<string, SharedBody>()
  const textOf = (name: string): SharedBody => {
    const known = texts.get(name)
    if (known !== undefined) return known
    const text = sharedBody(readFileSync(join(DOCUMENTATION_FOLDER, name), 'utf8'))
    texts.set(name, text)
    return text
  }
  return DEPTHS.map((names, index) =>
    ownRoute({
      method: 'GET',
      path: `${DOCUMENTATION}/${names.map((name) => `{${name}}`).join('/')}`,
      operationId: `getDocumentation${index + 1}`,
      summary: 'A page of the documentation, in Markdown',
      tags: ['First steps'],
      exposure: 'public',
      security: { scheme: 'anonymous' },
      cors: 'public',
      params: z.object(Object.fromEntries(names.map((name) => [name, part]))),
      headers: TextHeaders,
      responses: [...MARKDOWN_DOCS, ...unknown.docs],
      answer: ({ params, headers }) => {
        const given = params as Readonly<Record<string, string>>
        const name = names.map((one) => given[one]).join('/')
        // Only names of the list are read, so a path cannot leave the folder.
        if (!pages.has(name)) return unknown.render(null, NO_CONTEXT)
        const { accept } = headers as z.infer<typeof TextHeaders>
        return textBody(textOf(name), textType(accept, 'text/markdown'), MAX_AGE_SECS)
      },
    }),
  )
}
