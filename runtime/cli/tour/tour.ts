/**
 * `svc tour`: the first minutes of a new agent with a running service, and a user's sign-in, over
 * HTTP. Each step prints its request and response in short form. Exits with 1 at the first step
 * with an unexpected result.
 */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { createAgentKey } from '../../clients/client/agent.js'
import { openBrowser } from '../../clients/client/browser.js'
import { httpClient, type Request } from '../../clients/client/http.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { loadSettings } from '../../process/configuration/load-settings.js'
import { errorText } from '../../process/error-text.js'
import { formerly } from '../service-access.js'
import {
  basic,
  complete,
  expect,
  fact,
  type Journey,
  keep,
  logIn,
  member,
  short,
  start,
  type Step,
  TourStopped,
} from './journey.js'
import { personSteps, TOUR_CALLBACK } from './person.js'

const ORGANIZATIONS = '/api/v1/control-plane/organizations'

/** Uses the workspace, its tokens and the second agent, which logged in last. */
const controlPlaneSteps: readonly Step[] = [
  [
    'The operator creates a second environment and gets a token for it',
    async (journey) => {
      const tenants = `${ORGANIZATIONS}/${fact(journey, 'organization')}/tenants`
      const token = fact(journey, 'operatorToken')
      const json = { name: 'Tour staging', environment: 'sandbox' }
      const made = await expect(journey, 201, { method: 'POST', path: tenants, token, json })
      const path = `${tenants}/${String(member(made.body, 'id'))}/switch`
      await expect(journey, 200, { method: 'POST', path, token })
    },
  ],
  [
    "The sandbox gets another test user, which the tenant's user list shows",
    async (journey) => {
      const token = fact(journey, 'workspaceToken')
      const path = '/api/v1/sandbox/fixture-users'
      const minted = await expect(journey, 201, { method: 'POST', path, token })
      const email = encodeURIComponent(String(member(minted.body, 'email')))
      const found = await expect(journey, 200, {
        method: 'GET',
        path: `/api/v1/tenant-users?email=${email}`,
        token,
      })
      if ((found.body as unknown[]).length !== 1) throw new TourStopped('the user is not listed')
    },
  ],
  [
    'The second agent is suspended: its token is refused immediately',
    async (journey) => {
      const own = fact(journey, 'token')
      const path = '/api/v1/agents/me'
      await expect(journey, 200, { method: 'GET', path, token: own })
      await expect(journey, 200, {
        method: 'POST',
        path: `/api/v1/agents/${fact(journey, 'secondAgent')}/suspend`,
        token: fact(journey, 'workspaceToken'),
      })
      await expect(journey, 401, { method: 'GET', path, token: own })
    },
  ],
  [
    'The audit log has all of it, and its chain is intact',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'GET',
        path: '/api/v1/audit-events/verify',
        token: fact(journey, 'workspaceToken'),
      })
      if (member(body, 'valid') !== true) throw new TourStopped('the audit chain is broken')
      keep(journey, body, { auditHash: 'last_hash' })
    },
  ],
]

const DEVICE = '/api/v1/agents/delegations/device'

const delegationSteps: readonly Step[] = [
  [
    "Request a delegation from the workspace's user, who would decide at the link",
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: DEVICE,
        token: fact(journey, 'workspaceToken'),
        json: { scope: 'openid vault:list vault:read' },
      })
      keep(journey, body, { deviceCode: 'device_code' })
      const link = fact(journey, 'issuer') + String(member(body, 'verification_uri_complete'))
      journey.say(`   code ${String(member(body, 'user_code_display'))}, at ${link}`)
    },
  ],
  [
    'Poll for the token: the user has not decided yet',
    async (journey) => {
      const { body } = await expect(journey, 400, {
        method: 'POST',
        path: `${DEVICE}/token`,
        token: fact(journey, 'workspaceToken'),
        json: { device_code: fact(journey, 'deviceCode') },
      })
      journey.say(`   error: ${String(member(body, 'error'))}`)
    },
  ],
]

const vaultSteps: readonly Step[] = [
  [
    'Create an SSH certificate authority in the vault; its key never leaves the vault',
    async (journey) => {
      const { body } = await expect(journey, 201, {
        method: 'POST',
        path: '/api/v1/vault/credentials',
        token: fact(journey, 'workspaceToken'),
        json: { provider: 'ssh', credential_type: 'ssh_ca', label: 'Tour authority' },
      })
      keep(journey, body, { authority: 'id' })
    },
  ],
  [
    'Get a certificate with its own key, valid for five minutes',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: '/api/v1/agents/delegations/ssh-sign',
        token: fact(journey, 'workspaceToken'),
        json: {
          credential_id: fact(journey, 'authority'),
          target_host: 'db1.example.com',
          principals: ['deploy'],
        },
      })
      journey.say(`   trusted by: ${short({ ca_public_key: member(body, 'ca_public_key') })}`)
    },
  ],
]

export function tourCommand(program: Command): void {
  formerly(program.command('tour'), 'base-url', 'url')
    .description('use a running service like a new agent and a user')
    .option('--url <url>', 'address of the service; default: from the configuration')
    .option(
      '--ca-file <pem>',
      'file with the CA of its certificate; default: server.tls.ca_pem_path of the configuration',
    )
    .action(async ({ url, caFile }: { url?: string; caFile?: string }) => {
      const say = (line: string) => void process.stdout.write(`${line}\n`)
      let at: string
      let ca: string | undefined
      try {
        const known = url === undefined ? configured() : { url, caPath: undefined }
        const caPath = caFile ?? known.caPath
        at = known.url
        ca = caPath === undefined ? undefined : readFileSync(caPath, 'utf8')
      } catch (error) {
        process.stderr.write(`svc tour: ${errorText(error)}\n`)
        process.exitCode = 1
        return
      }
      process.exitCode = (await runTour(at, say, ca)) ? 0 : 1
    })
}

/**
 * Runs every step. False when one had an unexpected result.
 * @param ca PEM of the CA to trust, when the system does not know it.
 */
export async function runTour(
  baseUrl: string,
  say: (line: string) => void,
  ca?: string,
): Promise<boolean> {
  const http = httpClient(baseUrl, ca)
  const browser = openBrowser({ baseUrl, ca, userAgent: 'svc tour' })
  const journey: Journey = { http, say, key: createAgentKey(), facts: {} }
  const steps = [...STEPS, ...personSteps(browser)]
  try {
    for (const [index, [title, run]] of steps.entries()) {
      say(`\n${index + 1}. ${title}`)
      await run(journey)
    }
    say(
      `\nThe tour is over: ${steps.length} steps, all as documented.${nextPages(journey, baseUrl)}`,
    )
    return true
  } catch (error) {
    say(`\nThe tour stopped: ${reasonOf(error, baseUrl)}`)
    return false
  } finally {
    await http.close()
    await browser.close()
  }
}

const STEPS: readonly Step[] = [
  [
    'What can this service do?',
    async (journey) => {
      const { body } = await expect(journey, 200, { method: 'GET', path: '/api/v1/capabilities' })
      const capabilities = member(body, 'capabilities') as string[]
      journey.say(`   capabilities: ${capabilities.join(', ')}`)
      if (capabilities.includes('console')) journey.facts['console'] = 'on'
    },
  ],
  [
    'Which tenant and issuer must a proof of key ownership name?',
    async (journey) => {
      const path = '/api/v1/agents/workspace/bootstrap'
      const { body } = await expect(journey, 200, { method: 'GET', path })
      keep(journey, body, { issuer: 'issuer', controlPlane: 'control_plane_tenant_id' })
    },
  ],
  [
    'Start a workspace: send a new key with a proof of ownership, get a challenge',
    (journey) => start(journey, '/api/v1/agents/workspace/bootstrap/pow', 'controlPlane'),
  ],
  [
    'Solve the proof of work and get a workspace',
    async (journey) => {
      const path = '/api/v1/agents/workspace/bootstrap/pow/complete'
      const { body } = await complete(journey, path, 201, {
        organization_name: 'Tour',
        redirect_uris: [TOUR_CALLBACK],
        issue_operator_invite: true,
        framework: 'generic',
      })
      keep(journey, body, {
        workspaceToken: 'tenant_access_token',
        operatorToken: 'control_plane_access_token',
        organization: 'organization_id',
        tenant: 'tenant_id',
        clientId: 'client_id',
        clientSecret: 'client_secret',
      })
      journey.facts['agent'] = String(member(member(body, 'agent'), 'id'))
      keep(journey, member(body, 'fixture_end_user'), {
        personEmail: 'email',
        personPassword: 'password',
      })
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
  ['Log in: request a challenge, sign it, get tokens', (journey) => logIn(journey, 'agent')],
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
    'Call the API with the token',
    async (journey) => {
      await expect(journey, 200, {
        method: 'GET',
        path: '/api/v1/agents/me',
        token: fact(journey, 'token'),
      })
    },
  ],
  [
    'Refresh: a new refresh token replaces the old one',
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
    'The new application gets its own token (client_credentials)',
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
    'and checks a token (introspection)',
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
    'Subscribe a webhook receiver to events; the secret is shown once',
    async (journey) => {
      const token = fact(journey, 'workspaceToken')
      const path = '/api/v1/webhooks'
      const json = { url: 'https://receiver.example/svc', event_types: ['auth.login.*'] }
      const { body } = await expect(journey, 201, { method: 'POST', path, token, json })
      keep(journey, body, { webhook: 'id' })
      const at = `${path}/${fact(journey, 'webhook')}`
      await expect(journey, 200, { method: 'GET', path: `${at}/deliveries`, token })
      await expect(journey, 204, { method: 'DELETE', path: at, token })
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
  ...controlPlaneSteps,
  ...delegationSteps,
  ...vaultSteps,
]

/** Pages to open after the tour. */
function nextPages({ facts }: Journey, baseUrl: string): string {
  const lines = [
    `  ${baseUrl}/   the start page`,
    ...(facts['console'] === undefined ? [] : [`  ${baseUrl}/console   the console`]),
  ]
  return `\nOpen in a browser:\n${lines.join('\n')}`
}

function reasonOf(error: unknown, baseUrl: string): string {
  if (error instanceof TourStopped) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ECONNREFUSED') return `no service answers at ${baseUrl}: start it with npm start`
  return error instanceof Error ? error.message : String(error)
}

/** The deployment of the configuration. */
function configured(): { readonly url: string; readonly caPath: string | undefined } {
  const input = { environment: readEnvironment(), cwd: process.cwd(), servesPlane: false }
  const loaded = loadSettings(input)
  if (loaded.tag === 'refused')
    throw new TourStopped('the configuration is invalid: run svc config check')
  const { oidc, server } = loaded.settings
  return { url: oidc.issuer_url, caPath: server.tls?.ca_pem_path }
}
