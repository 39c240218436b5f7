/**
 * `svc tour`: a new agent's first minutes with a running service, over HTTP, each step printed with
 * its request and answer in short. Exits with 1 at the first step that does not go as documented.
 */
import type { Command } from 'commander'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { type AgentKey, createAgentKey } from '../client/agent.js'
import { type Answer, type HttpClient, httpClient, type Request } from '../client/http.js'
import { solve } from '../client/solver.js'
import { systemClock } from '../kernel/clock.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { loadSettings } from '../load-settings.js'

/** Long values are cut to this many characters; what is secret is cut anyway. */
const SHOWN_CHARACTERS = 44
const SECRET_CHARACTERS = 8
const SECRET_MEMBERS = /(token|secret|password|snippet|env_block|signature|proof|payload|url)$/
const AGENT_NAME = 'tour agent'

class TourStopped extends Error {}

type Members = Readonly<Record<string, unknown>>

/** What the steps hand to each other. */
interface Journey {
  readonly http: HttpClient
  readonly say: (line: string) => void
  readonly key: AgentKey
  readonly facts: Record<string, string>
}

type Step = readonly [title: string, run: (journey: Journey) => Promise<void>]

export function tourCommand(program: Command): void {
  program
    .command('tour')
    .description('drive a running service as a new agent would')
    .option('--base-url <url>', 'where the service runs; default: as configured')
    .action(async ({ baseUrl }: { baseUrl?: string }) => {
      const say = (line: string) => void process.stdout.write(`${line}\n`)
      process.exitCode = (await runTour(baseUrl ?? configuredBaseUrl(), say)) ? 0 : 1
    })
}

/** Runs every step; false when one did not go as documented. */
export async function runTour(baseUrl: string, say: (line: string) => void): Promise<boolean> {
  const http = httpClient(baseUrl)
  const journey: Journey = { http, say, key: createAgentKey(), facts: {} }
  try {
    for (const [index, [title, run]] of STEPS.entries()) {
      say(`\n${index + 1}. ${title}`)
      await run(journey)
    }
    say(`\nThe tour is over: ${STEPS.length} steps, all as documented.`)
    return true
  } catch (error) {
    say(`\nThe tour stopped: ${reasonOf(error, baseUrl)}`)
    return false
  } finally {
    await http.close()
  }
}

const STEPS: readonly Step[] = [
  [
    'What can this service do?',
    async (journey) => {
      const { body } = await expect(journey, 200, { method: 'GET', path: '/api/v1/capabilities' })
      journey.say(`   capabilities: ${(member(body, 'capabilities') as string[]).join(', ')}`)
    },
  ],
  [
    'Which tenant and issuer does a proof of key ownership name?',
    async (journey) => {
      const path = '/api/v1/agents/workspace/bootstrap'
      const { body } = await expect(journey, 200, { method: 'GET', path })
      keep(journey, body, { issuer: 'issuer', controlPlane: 'control_plane_tenant_id' })
    },
  ],
  [
    'Start a workspace: a fresh key, a proof that it is ours, a challenge in return',
    (journey) => start(journey, '/api/v1/agents/workspace/bootstrap/pow', 'controlPlane'),
  ],
  [
    'Prove the work and receive a workspace',
    async (journey) => {
      const path = '/api/v1/agents/workspace/bootstrap/pow/complete'
      const { body } = await complete(journey, path, 201, {
        organization_name: 'Tour',
        redirect_uris: ['http://127.0.0.1:3000/callback'],
        issue_operator_invite: true,
        framework: 'generic',
      })
      keep(journey, body, {
        workspaceToken: 'tenant_access_token',
        tenant: 'tenant_id',
        clientId: 'client_id',
        clientSecret: 'client_secret',
      })
      journey.facts['agent'] = String(member(member(body, 'agent'), 'id'))
    },
  ],
  [
    'The same challenge again is refused',
    async (journey) => {
      const { challenge_id, nonce, organization_name } = {
        challenge_id: fact(journey, 'challenge'),
        nonce: fact(journey, 'nonce'),
        organization_name: 'Tour',
      }
      await expect(journey, 400, {
        method: 'POST',
        path: '/api/v1/agents/workspace/bootstrap/pow/complete',
        json: { challenge_id, nonce, organization_name, redirect_uris: [] },
      })
    },
  ],
  ['Log in: ask for a challenge, sign it, get tokens', (journey) => logIn(journey, 'agent')],
  [
    'The token verifies against the published keys',
    async (journey) => {
      const { body } = await expect(journey, 200, { method: 'GET', path: '/.well-known/jwks.json' })
      const keySet = createLocalJWKSet(body as JSONWebKeySet)
      const { payload, protectedHeader } = await jwtVerify(fact(journey, 'token'), keySet, {
        issuer: fact(journey, 'issuer'),
        typ: 'at+jwt',
      })
      const { sub, tenant_id, subject_type, scope } = payload
      journey.say(`   verified: ${short({ alg: protectedHeader.alg, sub, tenant_id })}`)
      journey.say(`   claims: ${short({ subject_type, scope })}`)
    },
  ],
  [
    'Call the API with it',
    async (journey) => {
      await expect(journey, 200, {
        method: 'GET',
        path: '/api/v1/agents/me',
        token: fact(journey, 'token'),
      })
    },
  ],
  [
    'Refresh: the old refresh token is spent, a new one takes its place',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: '/oauth/token',
        form: {
          grant_type: 'refresh_token',
          refresh_token: fact(journey, 'refreshToken'),
          client_id: fact(journey, 'agent'),
        },
      })
      keep(journey, body, { token: 'access_token', refreshToken: 'refresh_token' })
    },
  ],
  [
    'The created application gets a token of its own (client_credentials)',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: '/oauth/token',
        headers: { authorization: basic(journey) },
        form: { grant_type: 'client_credentials' },
      })
      keep(journey, body, { serviceToken: 'access_token' })
    },
  ],
  [
    'and asks what a token is worth (introspection)',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: '/oauth/introspect',
        headers: { authorization: basic(journey) },
        form: { token: fact(journey, 'serviceToken') },
      })
      if (member(body, 'active') !== true) throw new TourStopped('a fresh token is not active')
    },
  ],
  [
    'The workspace token creates an application; the same idempotency key creates it once',
    async (journey) => {
      const create: Request = {
        method: 'POST',
        path: '/api/v1/applications',
        token: fact(journey, 'workspaceToken'),
        headers: { 'idempotency-key': journey.key.fingerprint },
        json: { name: 'Second', redirect_uris: ['https://app.example.com/callback'] },
      }
      const first = await expect(journey, 201, create)
      const second = await expect(journey, 201, create)
      if (member(first.body, 'id') !== member(second.body, 'id')) {
        throw new TourStopped('one idempotency key created two applications')
      }
    },
  ],
  [
    'A second agent registers into the new tenant',
    async (journey) => {
      const second: Journey = { ...journey, key: createAgentKey() }
      await start(second, '/api/v1/agents/auth/register/pow', 'tenant')
      const path = '/api/v1/agents/auth/register/pow/complete'
      const { body } = await complete(second, path, 200, {})
      keep(second, body, { secondAgent: 'agent_id' })
      await logIn(second, 'secondAgent')
    },
  ],
]

async function start(journey: Journey, path: string, tenantFact: string): Promise<void> {
  const target = { issuer: fact(journey, 'issuer'), tenantId: fact(journey, tenantFact) }
  const tenant = tenantFact === 'tenant' ? { tenant_id: target.tenantId } : {}
  const { body } = await expect(journey, 200, {
    method: 'POST',
    path,
    json: { name: AGENT_NAME, ...journey.key.registration(target), ...tenant },
  })
  keep(journey, body, {
    challenge: 'challenge_id',
    challengeToken: 'challenge_token',
    bits: 'difficulty_bits',
    floorSecs: 'min_duration_seconds',
  })
  journey.facts['startedMs'] = String(systemClock.monotonicMs())
}

async function complete(journey: Journey, path: string, status: number, rest: Members) {
  const started = systemClock.monotonicMs()
  const nonce = await solve({
    challengeToken: fact(journey, 'challengeToken'),
    difficultyBits: Number(fact(journey, 'bits')),
  })
  const ms = Math.round(systemClock.monotonicMs() - started)
  journey.say(`   solved ${fact(journey, 'bits')} bits in ${ms} ms: nonce ${nonce}`)
  journey.facts['nonce'] = nonce
  const json = { challenge_id: fact(journey, 'challenge'), nonce, ...rest }
  const request: Request = { method: 'POST', path, json }
  for (;;) {
    const answer = await journey.http.request(request)
    show(journey, request, answer)
    if (answer.status === status) return answer
    if (answer.status !== 425) throw new TourStopped(`expected ${status}, got ${answer.status}`)
    const waitSecs = Number(answer.headers['retry-after'])
    journey.say(`   too early: waiting ${waitSecs} s, as the answer says`)
    await new Promise((resolve) => setTimeout(resolve, waitSecs * 1000))
  }
}

async function logIn(journey: Journey, agentFact: string): Promise<void> {
  const challenge = await expect(journey, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/challenge',
    json: { agent_id: fact(journey, agentFact) },
  })
  const { body } = await expect(journey, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/verify',
    json: {
      challenge_id: member(challenge.body, 'challenge_id'),
      signature: journey.key.signChallenge(String(member(challenge.body, 'payload'))),
    },
  })
  keep(journey, body, { token: 'access_token', refreshToken: 'refresh_token' })
}

async function expect(journey: Journey, status: number, request: Request): Promise<Answer> {
  const answer = await journey.http.request(request)
  show(journey, request, answer)
  if (answer.status === status) return answer
  throw new TourStopped(
    `${request.method} ${request.path}: expected ${status}, got ${answer.status} ` +
      `(request ${answer.headers['x-request-id'] ?? 'without id'})`,
  )
}

function show({ say }: Journey, request: Request, { status, body }: Answer): void {
  const sent = request.json ?? request.form
  say(`   ${request.method} ${request.path}${sent === undefined ? '' : ` ${short(sent)}`}`)
  say(`   ${status} ${typeof body === 'string' ? short({ body }) : short(body)}`)
}

/** One line of JSON: long values cut, secrets cut shorter, deep things summed up. */
function short(value: unknown): string {
  const entries = Object.entries(value as Members).map(([name, held]) => {
    if (Array.isArray(held)) return `${name}: [${held.length}]`
    if (typeof held === 'object' && held !== null) return `${name}: {...}`
    const text = String(held).replaceAll('\n', '\\n')
    const limit = SECRET_MEMBERS.test(name) ? SECRET_CHARACTERS : SHOWN_CHARACTERS
    return `${name}: ${text.length > limit ? `${text.slice(0, limit)}...` : text}`
  })
  return `{ ${entries.join(', ')} }`
}

function keep(journey: Journey, body: unknown, names: Readonly<Record<string, string>>): void {
  for (const [name, path] of Object.entries(names)) {
    const value = member(body, path)
    if (value === undefined) throw new TourStopped(`the answer has no ${path}`)
    journey.facts[name] = String(value)
  }
}

function fact({ facts }: Journey, name: string): string {
  const value = facts[name]
  if (value === undefined) throw new TourStopped(`no step has found out: ${name}`)
  return value
}

function member(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Members)[name] : undefined
}

/** RFC 6749 section 2.3.1: both halves are form-encoded before they are joined. */
function basic(journey: Journey): string {
  const half = (name: string) => encodeURIComponent(fact(journey, name))
  return `Basic ${Buffer.from(`${half('clientId')}:${half('clientSecret')}`).toString('base64')}`
}

function reasonOf(error: unknown, baseUrl: string): string {
  if (error instanceof TourStopped) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ECONNREFUSED') return `nothing answers at ${baseUrl}; start it with npm start`
  return error instanceof Error ? error.message : String(error)
}

function configuredBaseUrl(): string {
  const loaded = loadSettings({ environment: readEnvironment(), cwd: process.cwd() })
  if (loaded.tag === 'refused')
    throw new TourStopped('the configuration is refused; see svc config check')
  return loaded.settings.oidc.issuer_url
}
