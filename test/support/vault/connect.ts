/** Connected accounts for tests: a provider that the test runs, and people who connect. */
import { createHash } from 'node:crypto'
import type { Api, Json, Workspace } from '../api.js'
import type { Page } from '../pages/browser.js'
import { delegate, fixtureOf, type Person, present } from '../agents/delegation.js'
import { helperEnds } from '../endings.js'
import { sql } from '../storage/sql.js'
import { type EgressHouse, UPSTREAM_NAME } from './egress.js'
import {
  type TokenReply,
  type TokenRequest,
  type TokenUpstream,
  tokenUpstream,
} from './token-upstream.js'

export const CONNECTORS = '/api/v1/vault/connectors'
export const CONNECTIONS = '/api/v1/vault/connections'
/** The scopes of an agent that asks. */
export const DELEGATED = 'openid vault:list vault:read vault:connect'

export interface Provider {
  readonly upstream: TokenUpstream
  /** Refresh tokens and access tokens that it was asked to revoke. */
  readonly revoked: readonly string[]
  readonly codes: readonly TokenRequest[]
  /** How it answers a code; null as RFC 6749 says. */
  answer(reply: (() => TokenReply | Promise<TokenReply>) | null): void
  /** The status of its answers to revocations. */
  confirm(status: number): void
  /** What it answers where the name of an account is read. */
  name(reply: () => TokenReply | Promise<TokenReply>): void
  /** Refuses refresh tokens. */
  refuse(error: string | null): void
  /** The person has agreed at the provider: the address to which it sends the browser back. */
  agree(location: string, members?: Readonly<Record<string, string>>): string
}

/** A provider with PKCE and rotating refresh tokens. */
export async function provider(): Promise<Provider> {
  const upstream = await tokenUpstream()
  helperEnds(() => upstream.close())
  const revoked: string[] = []
  const codes: TokenRequest[] = []
  const challenges = new Map<string, string>()
  let reply: Parameters<Provider['answer']>[0] = null
  let named: Parameters<Provider['name']>[0] = () => ({ body: { profile: { login: 'octo/cat' } } })
  let refusal: string | null = null
  let confirmation = 200
  upstream.answer((request) => {
    const { path, form } = request
    if (path === '/revoke') {
      revoked.push(form['token']!)
      return { status: confirmation, body: '' }
    }
    if (path === '/me') return named()
    if (form['grant_type'] === 'refresh_token') {
      return refusal === null
        ? upstream.issue(form['refresh_token']!)
        : { status: 400, body: { error: refusal } }
    }
    codes.push(request)
    if (reply !== null) return reply()
    const challenge = challenges.get(form['code'] ?? '')
    const verifier = createHash('sha256')
      .update(form['code_verifier'] ?? '')
      .digest('base64url')
    if (challenge === undefined || (challenge !== '' && challenge !== verifier))
      return { status: 400, body: { error: 'invalid_grant' } }
    challenges.delete(form['code']!)
    const first = { access_token: 'first-access', refresh_token: 'rt-0', expires_in: 3600 }
    return { body: { ...first, token_type: 'bearer', scope: 'read,write' } }
  })
  return {
    upstream,
    revoked,
    codes,
    answer: (next) => {
      reply = next
    },
    confirm: (status) => {
      confirmation = status
    },
    name: (next) => {
      named = next
    },
    refuse: (error) => {
      refusal = error
    },
    agree(location, members = {}) {
      const url = new URL(location)
      const code = `code-${challenges.size + codes.length}`
      challenges.set(code, url.searchParams.get('code_challenge') ?? '')
      const state = url.searchParams.get('state') ?? ''
      const given = Object.entries(members).length > 0 ? members : { code }
      return `/connect/callback?${new URLSearchParams({ state, ...given })}`
    },
  }
}

/** Sets up a connector for the provider. */
export async function connectorFor(
  api: Api,
  { token }: Pick<Workspace, 'token'>,
  { upstream: { origin } }: Provider,
  more: Json = {},
): Promise<Json> {
  const { body } = await api
    .post(CONNECTORS, token, {
      name: 'tracker',
      client_id: 'client-1',
      client_secret: 'client secret',
      authorization_endpoint: `${origin}/authorize?own=1`,
      token_endpoint: `${origin}/token`,
      revocation_endpoint: `${origin}/revoke`,
      scopes: ['read', 'write'],
      allowed_hosts: [UPSTREAM_NAME],
      account_label: { url: `${origin}/me`, pointer: '/profile/login' },
      ...more,
    })
    .gives(201)
  return body
}

/** Opens the page of a request. */
export const openConnect = async ({ browser }: Pick<Person, 'browser'>, url: unknown) =>
  browser.follow(await browser.get(new URL(String(url)).pathname))

/** Approves on the page. @returns where the browser is sent. */
export async function approve(
  person: Pick<Person, 'browser'>,
  page: Page,
  fields: Readonly<Record<string, string>> = {},
): Promise<string> {
  const sent = await person.browser.submit(page, fields, /approve$/)
  if (sent.status !== 303) throw new Error(`${sent.status}: ${sent.html}`)
  return String(sent.headers['location'])
}

/** Flows of connected accounts at a service that reaches loopback upstreams. */
export function connecting({ api, running }: Pick<EgressHouse, 'api' | 'running'>) {
  /** A tenant with a connector, a person, and an agent that acts for them. */
  async function setting(more: Json = {}) {
    const workspace = await api.workspace()
    const at = await provider()
    const connector = await connectorFor(api, workspace, at, more)
    const person = await present(api, fixtureOf(workspace))
    const lent = await delegate(api, workspace.token, person, { scope: DELEGATED })
    return { workspace, at, connector, person, lent }
  }
  type Setting = Awaited<ReturnType<typeof setting>>
  const start = async ({ lent }: Pick<Setting, 'lent'>, more: Json = {}) =>
    (await api.post(CONNECTIONS, lent.token, { connector: 'tracker', ...more }).gives(201)).body
  const read = async ({ workspace }: Pick<Setting, 'workspace'>, id: unknown) =>
    (await api.get(`${CONNECTIONS}/${String(id)}`, workspace.token).gives(200)).body
  return {
    setting,
    start,
    read,
    /** A connection whose person has agreed on the page and at the provider. */
    async connected(made: Setting, more: Json = {}) {
      const asked = await start(made, more)
      const page = await openConnect(made.person, asked['connect_url'])
      const location = await approve(made.person, page)
      const { browser } = made.person
      const done = await browser.follow(await browser.get(made.at.agree(location)))
      return { asked, done, connection: await read(made, asked['id']) }
    },
    call: ({ at }: Pick<Setting, 'at'>, token: string, credentialId: unknown) =>
      api.post('/v1/proxy', token, {
        credential_id: credentialId,
        url: `${at.upstream.origin}/api/things`,
      }),
    /** The next call needs another access token. */
    outdate: (credentialId: unknown) =>
      sql(running)`
        update vault_managed_tokens
        set obtained_at = now() - interval '1 hour', expires_at = now() - interval '1 minute'
        where credential_id = ${String(credentialId)}`,
    eventsOf: async ({ workspace }: Pick<Setting, 'workspace'>) =>
      (
        await sql<{ type: string }>(running)`
          select type from all_events
          where tenant_id = ${workspace.tenantId} and type like 'vault.connection.%' order by sequence`
      ).map(({ type }) => type.replace('vault.connection.', '')),
  }
}

/** The events of connections, with what causes them. */
export const connectionEvents = (cause: () => Promise<void>) => ({
  'vault.connection.requested': cause,
  'vault.connection.activated': cause,
  'vault.connection.denied': cause,
  'vault.connection.expired': cause,
  'vault.connection.needs_reauthorization': cause,
  'vault.connection.revoked': cause,
})

/** Connections that are denied, connected, ask again, expire and end. */
export async function everyConnectionEvent(
  api: Api,
  running: Parameters<typeof sql>[0],
  hear: (workspace: Workspace) => Promise<unknown>,
): Promise<void> {
  const workspace = await api.workspace()
  await hear(workspace)
  const { token } = workspace
  const at = await provider()
  const connector = await connectorFor(api, workspace, at)
  const person = await present(api, fixtureOf(workspace))
  const lent = await delegate(api, token, person, { scope: 'openid vault:read vault:connect' })
  const start = async () =>
    (await api.post(CONNECTIONS, lent.token, { connector: 'tracker' }).gives(201)).body
  const open = async () => openConnect(person, (await start())['connect_url'])
  await person.browser.submit(await open(), {}, /deny$/)
  await person.browser.get(at.agree(await approve(person, await open())))
  const path = `${CONNECTORS}/${String(connector['id'])}`
  await api.patch(path, token, { token_endpoint: 'https://other.example/token' }).gives(200)
  const late = String((await start())['id'])
  await sql(running)`update vault_connections set code_expires_at = now() where id = ${late}`
  await api.get(`${CONNECTIONS}/${late}`, token).gives(200)
  await api.delete(path, token).gives(204)
}
