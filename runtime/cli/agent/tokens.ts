/** `svc agent login`, `whoami` and `token`: stored tokens, renewed when they expire. */
import { openAgentKey } from '../../clients/client/agent.js'
import { type DelegatedToken, renewDelegation } from '../../clients/client/delegation.js'
import { type HttpClient, httpClient } from '../../clients/client/http.js'
import {
  holdingIdentity,
  readIdentity,
  type StoredDelegation,
  type StoredIdentity,
  type StoredToken,
  writeIdentity,
} from '../../clients/client/identity-file.js'
import { type AgentToken, logIn } from '../../clients/client/login.js'
import { expectAnswer, ServiceRefusal } from '../../clients/client/refusal.js'
import { FRESH_FOR_SECS } from '../../clients/client/session.js'
import type { Run } from './run.js'
import { withTarget } from '../target.js'

export type TokenWishes = { tenantId?: string; scope?: string; delegation?: string | true }

/** Each delegation is an entry. New ones replace the oldest. */
const DELEGATIONS_MAX = 20

export async function logInAgain(run: Run, wishes: TokenWishes): Promise<void> {
  await usingIdentity(run, async (held) => {
    const token = await direct(held, wishes, true)
    const about = {
      agent_id: held.identity.agent_id,
      tenant_id: token.tenant_id,
      scope: token.scope,
    }
    if (run.json) run.out(`${JSON.stringify(withTarget(about))}\n`)
    else run.out(`Logged in to tenant ${about.tenant_id}: ${about.scope}\n`)
  })
}

export async function whoAmI(run: Run): Promise<void> {
  await usingIdentity(run, async (held) => {
    const { access_token } = await direct(held, {}, false)
    const me = await ownRecord(held, access_token).catch(async (error: unknown) => {
      if (!isUnauthorized(error)) throw error
      return ownRecord(held, (await direct(held, {}, true)).access_token)
    })
    if (run.json) return run.out(`${JSON.stringify(withTarget(me))}\n`)
    const keys = me['keys'] as readonly Readonly<Record<string, unknown>>[]
    const rows = [
      ['agent', me['id']],
      ['name', me['name']],
      ['status', me['status']],
      ['home', me['tenant_id']],
      ['did', me['did']],
      ...keys.map((key) => ['key', `${String(key['id'])} ${String(key['status'])}`]),
      ['service', held.identity.base_url],
      ['file', run.file],
    ]
    run.out(rows.map(([name, value]) => `${String(name).padEnd(8)} ${String(value)}\n`).join(''))
  })
}

function ownRecord({ http }: Held, token: string) {
  return expectAnswer(http, 200, { method: 'GET', path: '/api/v1/agents/me', token })
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof ServiceRefusal && error.status === 401
}

/** A stored token may have been revoked. Only then a fresh one is requested. */
export async function current(
  held: Held,
  wishes: Pick<TokenWishes, 'tenantId' | 'scope'>,
): Promise<StoredToken> {
  const kept = held.identity.tokens
  const token = await direct(held, wishes, false)
  if (!kept.includes(token)) return token
  const ended = await ownRecord(held, token.access_token).then(() => false, isUnauthorized)
  return ended ? direct(held, wishes, true) : token
}

export async function printToken(run: Run, wishes: TokenWishes): Promise<void> {
  await usingIdentity(run, async (held) => {
    const { delegation } = wishes
    const token =
      delegation === undefined
        ? await current(held, wishes)
        : await delegated(held, delegation === true ? undefined : delegation)
    if (!run.json) return run.out(`${token.access_token}\n`)
    const { access_token, expires_at, scope } = token
    const expires_in = expires_at - run.clock.nowSecs()
    const whose = 'delegation_id' in token ? { delegation_id: token.delegation_id } : {}
    run.out(
      `${JSON.stringify(withTarget({ access_token, token_type: 'Bearer', expires_in, scope, ...whose }))}\n`,
    )
  })
}

/** The identity file, locked for one command. */
type Held = {
  readonly run: Run
  readonly http: HttpClient
  identity: StoredIdentity
}

export async function usingIdentity<T>(run: Run, work: (held: Held) => Promise<T>): Promise<T> {
  return holdingIdentity(run.file, async () => {
    const identity = await readIdentity(run.file)
    if (identity === undefined) {
      throw new Error(
        `${run.file} has no agent: run svc agent register or svc agent workspace create`,
      )
    }
    const http = httpClient(identity.base_url)
    try {
      return await work({ run, http, identity })
    } finally {
      await http.close()
    }
  })
}

/** A stored direct token, or a fresh one. */
export async function direct(
  held: Held,
  { tenantId, scope }: Pick<TokenWishes, 'tenantId' | 'scope'>,
  afresh: boolean,
): Promise<StoredToken> {
  const { run, http, identity } = held
  const tenant = (tenantId ?? identity.tenant_id ?? undefined)?.toLowerCase()
  const asked = scope ?? ''
  const kept = identity.tokens.find(
    (token) => token.tenant_id === tenant && token.asked_scope === asked,
  )
  if (!afresh && kept !== undefined && lasts(run, kept)) return kept
  const token: AgentToken = await logIn({
    http,
    key: openAgentKey(identity.private_key),
    issuer: identity.issuer,
    agentId: identity.agent_id ?? undefined,
    scope,
    ...(tenant === undefined ? {} : { tenantId: tenant }),
  })
  const stored: StoredToken = {
    tenant_id: token.tenantId,
    asked_scope: asked,
    scope: token.scope,
    access_token: token.accessToken,
    expires_at: run.clock.nowSecs() + token.expiresInSecs,
  }
  const others = identity.tokens.filter(
    (other) =>
      lasts(run, other) && !(other.tenant_id === stored.tenant_id && other.asked_scope === asked),
  )
  await keep(held, {
    // The key identifies a registration whose response was lost.
    agent_id: token.agentId,
    tenant_id: identity.tenant_id ?? token.tenantId,
    tokens: [stored, ...others],
  })
  return stored
}

/**
 * A delegated token. Its refresh token is used, and the next one stored, before the access token is
 * returned.
 */
async function delegated(held: Held, id: string | undefined): Promise<StoredDelegation> {
  const { run, http, identity } = held
  const kept = identity.delegations.find(
    ({ delegation_id }) => id === undefined || delegation_id === id,
  )
  if (kept === undefined) {
    throw new Error(
      `there is no ${id === undefined ? '' : 'such '}delegation: run svc agent delegate`,
    )
  }
  if (lasts(run, kept)) return kept
  const { agent_id: agentId } = identity
  if (kept.refresh_token === null || agentId === null) {
    await forget(held, kept)
    throw new Error('the delegation has ended: request a new one with svc agent delegate')
  }
  try {
    const refreshToken = kept.refresh_token
    return await keepDelegation(held, await renewDelegation({ http, agentId, refreshToken }))
  } catch (error) {
    // The delegation has ended: its stored tokens are useless.
    if (error instanceof ServiceRefusal && error.code === 'invalid_grant') await forget(held, kept)
    throw error
  }
}

export async function keepDelegation(held: Held, token: DelegatedToken): Promise<StoredDelegation> {
  const stored: StoredDelegation = {
    delegation_id: token.delegationId,
    subject: token.subject,
    scope: token.scope,
    access_token: token.accessToken,
    expires_at: held.run.clock.nowSecs() + token.expiresInSecs,
    refresh_token: token.refreshToken,
  }
  const known = held.identity.delegations
  const at = known.findIndex(({ delegation_id }) => delegation_id === stored.delegation_id)
  const delegations = at < 0 ? [stored, ...known] : known.with(at, stored)
  await keep(held, { delegations: delegations.slice(0, DELEGATIONS_MAX) })
  return stored
}

function forget(held: Held, { delegation_id }: StoredDelegation): Promise<void> {
  const delegations = held.identity.delegations.filter(
    (other) => other.delegation_id !== delegation_id,
  )
  return keep(held, { delegations })
}

async function keep(held: Held, change: Partial<StoredIdentity>): Promise<void> {
  held.identity = { ...held.identity, ...change }
  await writeIdentity(held.run.file, held.identity)
}

function lasts({ clock }: Run, { expires_at }: { readonly expires_at: number }): boolean {
  return expires_at - clock.nowSecs() > FRESH_FOR_SECS
}
