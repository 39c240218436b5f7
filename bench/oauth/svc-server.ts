/**
 * The whole service with a signed-in user, on a durable PostgreSQL:
 * `node svc-server.js <database url> <folder for its data> [<gateway threads>]`.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { Pool } from 'undici'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { bootstrap, startWhole } from '../whole-service.js'
import { answerRequests, CALLBACK, type Code } from './protocol.js'

const [url = '', dataDir = '', threads = '1'] = process.argv.slice(2)
const SCOPE = 'openid offline_access applications:read'
const AT_ONCE = 16

await runMigrations({ url, log: silentLogger })
await mkdir(dataDir, { recursive: true })
const { service, port } = await startWhole(dataDir, {
  DATABASE_URL: url,
  SVC_SERVER__GATEWAY_THREADS: threads,
})
const http = new Pool(service.url, { connections: AT_ONCE })
const jar = new Map<string, string>()
const host = new URL(service.baseUrl).host

type Sent = {
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string>>
  /** True to send the user's cookies. */
  readonly browser?: boolean
  readonly bearer?: string
}

async function send(path: string, { json, form, browser = false, bearer }: Sent = {}) {
  const body =
    json === undefined ? form && new URLSearchParams(form).toString() : JSON.stringify(json)
  const type = json === undefined ? 'application/x-www-form-urlencoded' : 'application/json'
  const answer = await http.request({
    method: body === undefined ? 'GET' : 'POST',
    path,
    body: body ?? null,
    headers: {
      host,
      ...(body === undefined ? {} : { 'content-type': type }),
      ...(browser ? { cookie: [...jar].map((pair) => pair.join('=')).join('; ') } : {}),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    },
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 400) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  for (const line of browser ? [answer.headers['set-cookie'] ?? []].flat() : []) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (name !== undefined && value !== undefined) jar.set(name, value)
  }
  return { text, location: String(answer.headers['location'] ?? '') }
}

const ask = async (path: string, sent?: Sent) =>
  JSON.parse((await send(path, sent)).text) as Record<string, never>

const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }
const workspace = await bootstrap((path, json) => ask(path, { json }), target, [CALLBACK])
await signIn()
const application = await createApplication()
const credentials = {
  client_id: String(application['client_id']),
  client_secret: String(application['client_secret']),
}
await allow()

answerRequests(
  {
    port,
    credentials,
    tokenPath: '/oauth/token',
    introspectionPath: '/oauth/introspect',
    clientScope: 'applications:read',
  },
  { codes, refreshTokens },
)

async function createApplication() {
  return ask('/api/v1/applications', {
    bearer: workspace.token,
    json: {
      name: 'Bench',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      scopes: SCOPE.split(' '),
    },
  })
}

/** Signs the workspace's fixture user in. */
async function signIn(): Promise<void> {
  const query = new URLSearchParams({ tenant_slug: workspace.slug, return_to: '/auth/account' })
  const page = await send(`/auth/login?${query}`, { browser: true })
  const { action, fields } = formOn(page.text)
  const { email, password } = workspace
  await send(action, { browser: true, form: { ...fields, email, password } })
}

type Asking = { readonly path: string; readonly verifier: string }

function authorization(): Asking {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: credentials.client_id,
    redirect_uri: CALLBACK,
    scope: SCOPE,
    state: 'bench',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  return { path: `/oauth/authorize?${query}`, verifier }
}

/** Grants consent, which is stored. */
async function allow(): Promise<void> {
  let page = await send(authorization().path, { browser: true })
  while (page.location !== '') {
    page = await send(page.location.replace(service.baseUrl, ''), { browser: true })
  }
  const { action, fields } = formOn(page.text)
  await send(action, { browser: true, form: { ...fields, action: 'allow' } })
}

/** The first form of a page with its hidden fields. */
function formOn(html: string): { action: string; fields: Record<string, string> } {
  const [, head = '', inside = ''] = /<form\b([^>]*)>(.*?)<\/form>/s.exec(html) ?? []
  const attribute = (tag: string, name: string) =>
    new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const hidden = [...inside.matchAll(/<input\b[^>]*type="hidden"[^>]*>/g)].map(([tag]) => [
    attribute(tag, 'name'),
    attribute(tag, 'value'),
  ])
  return { action: attribute(head, 'action'), fields: Object.fromEntries(hidden) }
}

async function code(): Promise<Code> {
  const { path, verifier } = authorization()
  const { location } = await send(path, { browser: true })
  const given = new URL(location).searchParams.get('code')
  if (given === null) throw new Error(`no code: ${location}`)
  return { code: given, code_verifier: verifier }
}

async function codes(count: number): Promise<Code[]> {
  return inTurns(count, code)
}

async function refreshTokens(count: number): Promise<string[]> {
  return inTurns(count, async () => {
    const form = {
      grant_type: 'authorization_code',
      redirect_uri: CALLBACK,
      ...credentials,
      ...(await code()),
    }
    return String((await ask('/oauth/token', { form }))['refresh_token'])
  })
}

async function inTurns<Made>(count: number, make: () => Promise<Made>): Promise<Made[]> {
  const made: Made[] = []
  let begun = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (begun < count) {
        begun += 1
        made.push(await make())
      }
    }),
  )
  return made
}
