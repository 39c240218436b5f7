/** Egress calls for tests: a service that reaches a loopback upstream, and authorized callers. */
import { Agent, type Dispatcher, request } from 'undici'
import { UPSTREAM_NAME } from '../../actors/vault/egress/loopback-tls.js'
import { startUpstream, type Upstream } from '../../actors/vault/egress/upstream.js'
import { type Api, apiOf, claimsOf, type Json } from '../api.js'
import { everywhere } from '../service/canaries.js'
import { sql } from '../storage/sql.js'
import { CALLS_UPSTREAMS, REACHES_UPSTREAMS } from '../fleet/profiles.js'
import { accessToken } from '../oauth/service-keys.js'
import {
  DEFAULT_TRANSPORT,
  serviceWithActors,
  sharedService,
  type TestService,
  type TestServiceOptions,
  testService,
} from '../service.js'
import { helperEnds } from '../endings.js'

export { UPSTREAM_NAME }
export const CREDENTIALS = '/api/v1/vault/credentials'
/** Must reach the upstream only. */
export const SECRET = everywhere.plant('secret of egress', 'canary-0f9b+61/7d')

export interface EgressHouse {
  readonly running: TestService
  readonly api: Api
  readonly upstream: Upstream
  /** Settings for another process that relays like this service. */
  readonly environment: Readonly<Record<string, string>>
  /** Sends a raw request, for responses that are not JSON. */
  send(path: string, options: SendOptions): Promise<Dispatcher.ResponseData>
  end(): Promise<void>
}

export type SendOptions = {
  readonly token: string
  readonly headers?: Record<string, string>
  readonly body?: Dispatcher.DispatchOptions['body']
  readonly method?: 'GET' | 'POST'
  readonly signal?: AbortSignal
}

/** An upstream on loopback, and the settings to reach it. */
export async function reachableUpstream(): Promise<{
  readonly upstream: Upstream
  readonly environment: Readonly<Record<string, string>>
  end(): Promise<void>
}> {
  const upstream = await startUpstream({ tls: true })
  return { upstream, environment: REACHES_UPSTREAMS, end: () => upstream.close() }
}

/** An upstream, and a service that reaches it: one that files share, except for settings that no profile has. */
export async function egressHouse(options: TestServiceOptions = {}): Promise<EgressHouse> {
  const { transport = DEFAULT_TRANSPORT, ...own } = options
  if (Object.keys(own).length > 0) return houseOf(options, testService)
  return houseOf(options, () => sharedService('egress', { transport }))
}

/** Two processes of a deployment, which files share, each with an upstream. */
export async function egressPair(): Promise<readonly [EgressHouse, EgressHouse]> {
  const first = await houseOf({}, () => sharedService('egress', { isPair: true }))
  const { secondUrl: baseUrl, ...running } = first.running
  if (baseUrl === undefined) return [first, await egressHouse({ peerOf: first.running })]
  const end = () => Promise.resolve()
  return [first, await houseOf({}, () => Promise.resolve({ ...running, baseUrl, end }))]
}

/** A service in the process of the test, for tests that stop it or what it depends on. */
export function ownEgressHouse(options: TestServiceOptions = {}): Promise<EgressHouse> {
  return houseOf(options, serviceWithActors)
}

async function houseOf(
  { environment: more, ...options }: TestServiceOptions,
  start: (options: TestServiceOptions) => Promise<TestService>,
): Promise<EgressHouse> {
  const environment = { ...CALLS_UPSTREAMS, ...more }
  const upstream = await startUpstream({ tls: true })
  const running = await start({ ...options, environment })
  const agent = new Agent({
    allowH2: running.ca !== undefined,
    connect: running.ca === undefined ? {} : { ca: running.ca },
    bodyTimeout: 0,
    headersTimeout: 0,
  })
  return {
    running,
    api: apiOf(running),
    upstream,
    environment,
    send: (path, { token, headers = {}, body = null, method = 'POST', signal }) =>
      request(new URL(path, running.baseUrl), {
        dispatcher: agent,
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
        body: body as null,
        ...(signal === undefined ? {} : { signal }),
      }),
    end: helperEnds(async () => {
      await agent.destroy()
      await running.end()
      await upstream.close()
    }),
  }
}

export interface Setting {
  readonly tenantId: string
  readonly operator: string
  readonly agentId: string
  /** A direct token of the agent. */
  readonly direct: string
  /** A delegated token of the agent. */
  readonly delegated: string
  readonly credentialId: string
  readonly grantId: string
}

/** A tenant with a credential for the upstream, an agent, and a grant to it. */
export async function settingOf(
  { running, api }: Pick<EgressHouse, 'running' | 'api'>,
  credential: Json = {},
  grant: Json = {},
  from?: string,
): Promise<Setting> {
  const { token: operator, tenantId } = await api.workspace(undefined, from)
  const { key, agentId } = await api.register(tenantId)
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId }, 'vault:read')
  const direct = String(body['access_token'])
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
    ...credential,
  })
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  const credentialId = String(created.body['id'])
  const granted = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'agent',
    grantee_id: agentId,
    ...grant,
  })
  if (granted.status !== 201) throw new Error(JSON.stringify(granted.body))
  const grantId = String(granted.body['id'])
  const delegated = await delegatedToken(running, direct, agentId)
  return { tenantId, operator, agentId, direct, delegated, credentialId, grantId }
}

/** A delegated token, signed as the service signs it. */
export function delegatedToken(
  running: Pick<TestService, 'db' | 'kms'>,
  direct: string,
  agentId: string,
  more: Json = {},
): Promise<string> {
  const act = { sub: agentId, subject_type: 'agent' }
  return accessToken(running, { ...claimsOf(direct), act, ...more })
}

/** Headers of a call with a raw body. */
export function bodyCall(
  { credentialId }: Pick<Setting, 'credentialId'>,
  url: string,
  more: Record<string, string> = {},
): Record<string, string> {
  return {
    'x-svc-credential-id': credentialId,
    'x-svc-url': url,
    'x-svc-method': 'POST',
    ...more,
  }
}

export type ClosedEvent = Readonly<Record<string, unknown>>

/** The `data` of the end events of a tenant, once there are as many. */
export async function closedCalls(
  { running }: EgressHouse,
  tenantId: string,
  count: number,
): Promise<ClosedEvent[]> {
  for (let attempt = 0; ; attempt += 1) {
    const rows = await sql<{ data: ClosedEvent }>(running)`
      select data from all_events where tenant_id = ${tenantId} and type = 'egress.stream.closed'
      order by sequence`
    if (rows.length >= count || attempt > 400) return rows.map(({ data }) => data)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Moves all events of a tenant one hour into the past. */
export async function longAgo(
  { running }: EgressHouse,
  { tenantId }: Pick<Setting, 'tenantId'>,
): Promise<void> {
  await sql(running)`
    update events set dispatched_at = dispatched_at - interval '1 h' where tenant_id = ${tenantId}`
  await sql(running)`update egress_settlement set settled_until = now() - interval '2 h'`
}

/** Calls of each setting that run until `end`. */
export function holdCalls(
  { send, upstream }: EgressHouse,
  settings: readonly Setting[],
  each: number,
  path: string,
  stream: boolean,
) {
  const control = new AbortController()
  let refused = 0
  const calls = settings.flatMap((setting) =>
    Array.from({ length: each }, async () => {
      const { statusCode, body } = await send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, upstream.origin + path, {
          'x-svc-method': 'GET',
          'x-svc-stream-response': String(stream),
        }),
        signal: control.signal,
      })
      await body.dump()
      if (statusCode === 503) refused += 1
      return statusCode
    }),
  )
  const over = Promise.allSettled(calls)
  return {
    refused: () => refused,
    async end() {
      control.abort()
      await over
    },
  }
}
