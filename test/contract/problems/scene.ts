/** The services and callers of all refusals, and the form of a row of their table. */
import anyTest, { type TestFn } from 'ava'
import { type Api, apiOf, type Workspace } from '../../support/api.js'
import { fixtureOf, type Human, type Person, present } from '../../support/agents/delegation.js'
import { type Answer, callerOf } from '../../support/agents/journey.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import { CIBA_GRANT } from '../../support/oauth/ciba.js'
import { type RelyingParty, relyingParty } from '../../support/oauth/relying-party.js'
import { ownService } from '../../support/service/own-service.js'
import type { Refusal } from '../../support/service/refusals.js'
import { METRICS_TOKEN } from '../../support/service/watch.js'
import type { TestService } from '../../support/service.js'

export const UNKNOWN_ID = '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
export const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const SCOPES = ['openid', 'profile', 'email', 'vault:list', 'vault:read']
const GRANTS = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  EXCHANGE_GRANT,
  DEVICE_GRANT,
  CIBA_GRANT,
]

export type Fields = Readonly<Record<string, string>>
type LogLine = Readonly<Record<string, unknown>>

export type Scene = {
  /** The log lines of requests to `running`. */
  readonly lines: readonly LogLine[]
  readonly running: TestService
  /** The same deployment with other settings. */
  readonly strict: TestService
  readonly api: Api
  readonly here: Workspace
  readonly there: Workspace
  readonly human: Human
  readonly ada: Person
  readonly web: RelyingParty
  readonly other: RelyingParty
  readonly spa: RelyingParty
  /** Has client_credentials alone. */
  readonly machine: RelyingParty
}

/** A refusal: its form, its status and code, when it comes, and a request that gets it. */
export type Row = Pick<Refusal, 'code' | 'headers' | 'members' | 'status'> & {
  /** A problem document, or the error of RFC 6749 section 5.2. */
  readonly form: 'problem' | 'oauth'
  /** The last part of `type` of a problem document. */
  readonly name?: string | undefined
  readonly when: string
  readonly provoke: (scene: Scene) => Promise<Answer>
}

export const test = anyTest as TestFn<Scene>

const ENVIRONMENT = {
  ...COMMERCE,
  SVC_COMMERCE__X402_ENABLED: 'true',
  SVC_COMMERCE__X402_FACILITATOR_URL: 'http://127.0.0.1:9',
  SVC_WALLET__ENABLED: 'true',
  SVC_OPENAPI__EXPOSURE: 'internal',
  SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
}
const STRICT = {
  SVC_SERVER__ALLOWED_HOSTS: 'localhost',
  SVC_DEVICE_AUTHORIZATION__DELEGATION_TTL_SECS: '4',
  SVC_DPOP__REQUIRE_NONCE: 'true',
  SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
  SVC_CHALLENGE__POW_MIN_DURATION_SECS: '60',
  SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1/32,::1/128',
  SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
}

async function open(): Promise<Scene> {
  const lines: LogLine[] = []
  // The tests set Host, which HTTP/2 clients cannot.
  const transport = 'plain_http'
  const running = await ownService({
    environment: ENVIRONMENT,
    transport,
    onLog: (line) => {
      if (line.includes('"msg":"request"')) lines.push(JSON.parse(line) as LogLine)
    },
  })
  const strict = await ownService({ peerOf: running, transport, environment: STRICT })
  const api = apiOf(running)
  const [here, there] = [await api.workspace('Here'), await api.workspace('There')]
  const human = fixtureOf(here)
  const ada = await present(api, human)
  const all = { scopes: SCOPES, grantTypes: GRANTS }
  const [web, other, spa, machine] = await Promise.all([
    relyingParty(running, here, all),
    relyingParty(running, here, all),
    relyingParty(running, here, {
      ...all,
      clientType: 'public',
      tokenEndpointAuthMethod: 'none',
    }),
    relyingParty(running, here, { scopes: SCOPES, grantTypes: ['client_credentials'] }),
  ])
  return { lines, running, strict, api, here, there, human, ada, web, other, spa, machine }
}

/** Open before the rows are made, because one row is made for each operation that the service has. */
export const scene = await open()
const { body: document } = await scene.api.get('/openapi.json')
export const paths = document['paths'] as Readonly<Record<string, object>>

test.before((t) => {
  t.context = scene
})
test.after.always(async () => {
  await scene.ada.browser.close()
  await scene.api.close()
  await scene.strict.end()
  await scene.running.end()
})

export const bearer = (token: unknown) => ({ authorization: `Bearer ${String(token)}` })
export const secretOf = ({ clientId, secret }: RelyingParty) => ({
  client_id: clientId,
  client_secret: secret,
})
export const send = ({ running }: Scene, path: string, fields: Fields, headers: Fields = {}) =>
  callerOf(running.baseUrl).form(path, fields, headers)
