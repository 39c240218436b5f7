/**
 * The script of the hosted pages, for passkeys: WebAuthn ceremonies need `navigator.credentials`. It consists of
 * the @simplewebauthn/browser library and the code that connects it to the forms.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { NO_CONTEXT } from '../../response/replies.js'
import { ownRoute, problem, type Rendered, type Route } from '../../route.js'

const LIBRARY = new URL(
  '../dist/bundle/index.umd.min.js',
  import.meta.resolve('@simplewebauthn/browser'),
)
const OURS = new URL('../../../../gateway/pages/templates/identity/passkeys.js', import.meta.url)
const SCRIPT = `${readFileSync(LIBRARY, 'utf8').trimEnd()}\n${readFileSync(OURS, 'utf8')}`
const DIGEST = createHash('sha256').update(SCRIPT).digest('hex').slice(0, 16)

/** The path contains a digest of the content, so that the script can be cached for ever. */
export const PASSKEY_SCRIPT = {
  path: `/auth/script/${DIGEST}`,
  integrity: `sha384-${createHash('sha384').update(SCRIPT).digest('base64')}`,
}

const unknown = problem(404, 'not-found', { detail: 'There is no such script.' })
const ready: Rendered = {
  form: 'body',
  status: 200,
  contentType: 'text/javascript; charset=utf-8',
  body: SCRIPT,
  cacheControl: 'public, max-age=31536000, immutable',
}
const Script = z.object({ digest: z.string().max(64) })

export const scriptRoutes: readonly Route[] = [
  ownRoute({
    method: 'GET',
    path: '/auth/script/{digest}',
    operationId: 'readScript',
    summary: 'The script of the hosted pages, for passkeys',
    tags: ['Hosted pages'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    params: Script,
    responses: [{ status: 200, contentType: 'text/javascript', schema: null }, ...unknown.docs],
    answer: ({ params }) =>
      (params as z.infer<typeof Script>).digest === DIGEST
        ? ready
        : unknown.render(null, NO_CONTEXT),
  }),
]
