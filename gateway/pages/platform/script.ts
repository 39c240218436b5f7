/**
 * The scripts of the hosted pages. For passkeys: WebAuthn ceremonies need `navigator.credentials`, so there are the
 * @simplewebauthn/browser library and the code that connects it to the forms. For the CAPTCHA: the proof of work.
 * For sign-in with Ethereum: the wallet of the browser. For controls: showing a password, and copying, saving
 * and printing recovery codes.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { NO_CONTEXT } from '../../response/replies.js'
import { sharedBody } from '../../response/shared-body.js'
import { ownRoute, problem, type Rendered, type Route } from '../../route.js'

const LIBRARY = new URL(
  '../dist/bundle/index.umd.min.js',
  import.meta.resolve('@simplewebauthn/browser'),
)
const PASSKEYS = new URL(
  '../../../../gateway/pages/templates/identity/passkeys.js',
  import.meta.url,
)
const WALLET = new URL('../../../../gateway/pages/templates/identity/wallet.js', import.meta.url)
const CAPTCHA = new URL('../../../../gateway/pages/templates/identity/captcha.js', import.meta.url)

const CONTROLS = new URL(
  '../../../../gateway/pages/templates/platform/controls.js',
  import.meta.url,
)

type Script = { readonly path: string; readonly integrity: string }
const byDigest = new Map<string, Rendered>()

/** Publishes a script. The path contains a digest of the content, so that browsers may cache it forever. */
function publish(text: string): Script {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  byDigest.set(digest, {
    form: 'body',
    status: 200,
    contentType: 'text/javascript; charset=utf-8',
    body: sharedBody(text).body,
    cacheControl: 'public, max-age=31536000, immutable',
  })
  return {
    path: `/auth/script/${digest}`,
    integrity: `sha384-${createHash('sha384').update(text).digest('base64')}`,
  }
}

export const PASSKEY_SCRIPT = publish(
  `${readFileSync(LIBRARY, 'utf8').trimEnd()}\n${readFileSync(PASSKEYS, 'utf8')}`,
)
export const CONTROLS_SCRIPT = publish(readFileSync(CONTROLS, 'utf8'))
export const WALLET_SCRIPT = publish(readFileSync(WALLET, 'utf8'))
export const CAPTCHA_SCRIPT = publish(readFileSync(CAPTCHA, 'utf8'))

const unknown = problem(404, 'not-found', { detail: 'There is no such script.' })
const Params = z.object({ digest: z.string().max(64) })

export const scriptRoutes: readonly Route[] = [
  ownRoute({
    method: 'GET',
    path: '/auth/script/{digest}',
    operationId: 'readScript',
    summary: 'The scripts of the hosted pages, for passkeys, wallets, controls and the CAPTCHA',
    tags: ['Hosted pages'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    params: Params,
    responses: [{ status: 200, contentType: 'text/javascript', schema: null }, ...unknown.docs],
    answer: ({ params }) =>
      byDigest.get((params as z.infer<typeof Params>).digest) ?? unknown.render(null, NO_CONTEXT),
  }),
]
