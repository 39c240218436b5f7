/** What the APIs of docs/examples have in common: tokens that they accept or refuse, and webhooks. */
import { createHmac, hkdfSync, randomUUID } from 'node:crypto'
import type { ExecutionContext } from 'ava'
import type { Api } from '../api.js'

const SCOPE = 'applications:read'
const WEBHOOK_SECRET = 'example-secret-of-32-characters-x'

export interface ProtectedApi {
  /** ISSUER, AUDIENCE, TENANT_ID and WEBHOOK_SECRET of the program. */
  readonly environment: Readonly<Record<string, string>>
  /** Calls the operation with valid and invalid tokens. */
  check(t: ExecutionContext, url: string): Promise<void>
}

/** An application of a fresh workspace, whose audience is the API. */
export async function protectedApi(api: Api): Promise<ProtectedApi> {
  const own = await api.workspace()
  const other = await api.workspace('Other')
  const { client_id: clientId, client_secret: clientSecret } = own.body
  const application = await api.get(`/api/v1/applications/${String(clientId)}`, own.token)
  const audience = String(application.body['audience'])

  async function tokenOf(of: typeof own, parameters: Readonly<Record<string, string>>) {
    const { client_id: id, client_secret: secret } = of.body
    const basic = Buffer.from(`${String(id)}:${String(secret)}`).toString('base64')
    const answer = await api.form(
      '/oauth/token',
      { grant_type: 'client_credentials', ...parameters },
      { authorization: `Basic ${basic}` },
    )
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return String(answer.body['access_token'])
  }

  return {
    environment: {
      ISSUER: api.at.issuer,
      AUDIENCE: audience,
      TENANT_ID: own.tenantId,
      WEBHOOK_SECRET,
    },
    async check(t, url) {
      t.truthy(clientId)
      t.truthy(clientSecret)
      const call = async (token?: string) => {
        const headers: Record<string, string> =
          token === undefined ? {} : { authorization: `Bearer ${token}` }
        const response = await fetch(url, { headers })
        const challenge = response.headers.get('www-authenticate') ?? ''
        return { status: response.status, challenge, text: await response.text() }
      }
      const token = await tokenOf(own, { scope: SCOPE })
      const good = await call(token)
      t.is(good.status, 200, good.text)
      t.deepEqual(JSON.parse(good.text), { subject: clientId, subject_type: 'service' })
      const bare = await call()
      t.is(bare.status, 401)
      t.regex(bare.challenge, /^Bearer/)
      const [head = '', payload = '', signature = ''] = token.split('.')
      const changed = Buffer.from(payload, 'base64url')
        .toString('utf8')
        .replace(SCOPE, 'users:read')
      for (const [what, invalid] of Object.entries({
        'a changed signature': `${head}.${payload}.${signature.slice(0, -4)}AAAA`,
        'changed claims': `${head}.${Buffer.from(changed).toString('base64url')}.${signature}`,
        'no signature': `${head}.${payload}.`,
        'no JWT': 'token',
        'another audience': own.token,
        'another tenant': await tokenOf(other, { scope: SCOPE }),
      })) {
        const { status, challenge } = await call(invalid)
        t.is(status, 401, what)
        t.regex(challenge, /invalid_token/, what)
      }
      const narrow = await call(await tokenOf(own, { scope: 'users:read' }))
      t.is(narrow.status, 403)
      t.regex(narrow.challenge, /insufficient_scope.*scope="applications:read"/)
    },
  }
}

/** Sends a delivery as the service signs it, then the same with faults. The receiver prints the event once. */
export async function deliveredTo(
  t: ExecutionContext,
  { environment }: ProtectedApi,
  url: string,
  printed: () => Promise<string>,
): Promise<void> {
  const body = JSON.stringify({ type: 'org.created', data: { name: 'Zoë' } })
  const key = Buffer.from(
    hkdfSync(
      'sha256',
      environment['WEBHOOK_SECRET']!,
      'svc:webhook-mac:v1',
      'svc-webhook-mac-v1',
      32,
    ),
  )
  const deliver = async ({ ageSecs = 0, sent = body, secret = key } = {}) => {
    const timestamp = String(Math.floor(Date.now() / 1000) - ageSecs)
    const id = randomUUID()
    const signed = `svc-webhook-v1\n${timestamp}\n300\n${id}\norg.created\n${body}`
    const mac = createHmac('sha256', secret).update(signed).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'x-svc-signature-suite': 'svc-webhook-v1',
      'x-svc-signature-256': `sha256=${mac}`,
      'x-svc-signature-max-age': '300',
      'x-svc-timestamp': timestamp,
      'x-svc-event': 'org.created',
      'x-svc-delivery': id,
    }
    return (await fetch(url, { method: 'POST', headers, body: sent })).status
  }
  t.is(await deliver(), 200)
  t.is(await printed(), 'event org.created')
  t.is(await deliver({ sent: body.replace('Zoë', 'Zoe') }), 400, 'a changed body')
  t.is(await deliver({ ageSecs: 400 }), 400, 'an old delivery')
  t.is(await deliver({ ageSecs: -400 }), 400, 'a time in the future')
  t.is(await deliver({ secret: Buffer.alloc(32, 1) }), 400, 'another secret')
}
