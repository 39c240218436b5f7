/** The stylesheet of the console, in addition to the hosted pages' stylesheet. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { NO_CONTEXT } from '../../response/replies.js'
import { sharedBody } from '../../response/shared-body.js'
import { ownRoute, problem, type Route } from '../../route.js'

const STYLE = readFileSync(
  new URL('../../../../gateway/pages/templates/console/style.css', import.meta.url),
  'utf8',
)
const { body: BODY } = sharedBody(STYLE)
const DIGEST = createHash('sha256').update(STYLE).digest('hex').slice(0, 16)

export const CONSOLE_STYLE_PATH = `/console/style/${DIGEST}`

const Params = z.object({ digest: z.string().max(64) })
const unknown = problem(404, 'not-found', { detail: 'There is no such stylesheet.' })

/** The path contains a digest of the content, so that the stylesheet can be cached forever. */
export const consoleStyleRoute: Route = ownRoute({
  method: 'GET',
  path: '/console/style/{digest}',
  operationId: 'readConsoleStyle',
  summary: 'The stylesheet of the console',
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'anonymous' },
  params: Params,
  responses: [{ status: 200, contentType: 'text/css', schema: null }, ...unknown.docs],
  answer: ({ params }) =>
    (params as z.infer<typeof Params>).digest === DIGEST
      ? {
          form: 'body',
          status: 200,
          contentType: 'text/css; charset=utf-8',
          body: BODY,
          cacheControl: 'public, max-age=31536000, immutable',
        }
      : unknown.render(null, NO_CONTEXT),
})
