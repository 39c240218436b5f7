/** Every 401 names the scheme that the operation takes (RFC 9110 section 11.6.1). */
import test, { type ExecutionContext } from 'ava'
import { routes } from '../../gateway/route-table.js'
import type { Route } from '../../gateway/route.js'
import { apiOf } from '../support/api.js'
import { sharedService } from '../support/service.js'

const UNKNOWN_ID = '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'
const CHALLENGE = /^[A-Za-z][A-Za-z-]* [a-z_]+="[^"]+"(?:, [a-z_]+="[^"]+")*$/
const BASIC = 'Basic realm="svc", charset="UTF-8"'
/** Operations of clients. Introspection takes tokens too. */
const OF_CLIENT = new Set([
  'issueToken',
  'introspectToken',
  'revokeToken',
  'pushAuthorizationRequest',
  'authorizeDevice',
  'authorizeBackchannel',
])

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const HEADERS: readonly (string | null)[] = [null, 'Bearer x.y.z', basic('a:b'), 'Negotiate x']
/** What clients of every kind send. */
const CLIENTS: readonly string[] = [
  basic(`${UNKNOWN_ID}:`),
  basic(`${encodeURIComponent('https://app.example/client.json')}:secret`),
  basic('svc_console:secret'),
  'basic',
  'Basic !!!',
  'Digest username="a"',
]

async function asked(t: ExecutionContext, profile: 'commerce' | 'enterprise') {
  const api = apiOf(await sharedService(profile))
  const refused = new Set<Route>()
  const ask = async (route: Route, authorization: string | null) => {
    const { method, path, operationId, body } = route
    const isClient = OF_CLIENT.has(operationId)
    const at = path.replaceAll(/\{[^}]+\}/g, UNKNOWN_ID)
    const credentials = authorization === null ? {} : { authorization }
    const type = isClient ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
    const { status, headers } = await api.call(method, at, {
      headers: { ...type, ...credentials },
      ...(body?.kind === 'json' ? { json: {} } : {}),
    })
    if (status !== 401) return
    refused.add(route)
    const where = `${operationId}, ${authorization}`
    const challenge = headers['www-authenticate']
    const isToken = authorization?.startsWith('Bearer') === true
    if (isClient && !(isToken && operationId === 'introspectToken')) {
      // RFC 6749 section 5.2: a client that used the header learns the scheme, another one used the form.
      t.is(challenge, authorization === null ? undefined : BASIC, where)
      return
    }
    t.regex(challenge ?? '', CHALLENGE, where)
    // RFC 6750 section 3.1
    if (authorization === null) t.notRegex(challenge ?? '', /error=/, where)
    if (isToken && challenge?.startsWith('Bearer') === true)
      t.regex(challenge ?? '', /error="[a-z_]+"/, where)
  }
  for (const route of routes) {
    const more = OF_CLIENT.has(route.operationId) ? CLIENTS : []
    await Promise.all([...HEADERS, ...more].map((authorization) => ask(route, authorization)))
  }
  return [...refused]
}

test('every 401 has its challenge, with an error where a token was sent', async (t) => {
  const refused = await asked(t, 'commerce')
  const names = new Set(refused.map(({ operationId }) => operationId))
  t.true(refused.length > 150, String(refused.length))
  for (const name of ['issueToken', 'introspectToken', 'registerClient', 'getFulfillment'])
    t.true(names.has(name), name)
})

test('directories have theirs', async (t) => {
  const refused = await asked(t, 'enterprise')
  t.true(refused.filter(({ security }) => security.scheme === 'scim').length > 10)
})
