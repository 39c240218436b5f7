/**
 * The scenario `mixed` of `svc seed`: the rows of one tenant with users, applications, agents, sessions, tokens, consents
 * and a webhook, and the events of their creation. All values but the times follow from the seed.
 */
import { createHash, createPublicKey } from 'node:crypto'
import { didKey, fingerprint, publicJwk } from '../../../actors/domain/agents/agent-keys.js'
import {
  agentRegistered,
  catalogued,
  type EventFields,
  type EventSubject,
  type EventType,
} from '../../../actors/domain/events.js'
import { REGISTERED_AGENT_SCOPES, type Scope } from '../../../actors/domain/scopes.js'
import type { AgentId, KeyFingerprint, TenantId } from '../../../actors/domain/ids.js'
import { clientSecretSha256, DEFAULT_SCOPES } from '../../../storage/oauth/applications.js'
import { defaultAudience } from '../../../storage/oauth/audiences.js'
import {
  SEEDED_TABLES,
  type SeededTable,
  type SeedRow,
} from '../../../storage/operations/seed-rows.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import { ed25519KeyOf } from '../../kernel/key-pair.js'
import type { Random } from '../../kernel/random.js'
import { seededRandom } from './seeded-random.js'

const AGENTS_PER_TENANT = 3
/** Administrators besides the owner. */
const ADMINS = 3
/** Every n-th tenant is a sandbox, has a webhook, or sells something. A shop is a sandbox. */
const EVERY = { sandbox: 5, webhook: 5, shop: 10 } as const
/** So that a program can read each list of the tenant. */
const BACKEND_SCOPES: readonly Scope[] = [
  'applications:read',
  'users:read',
  'webhooks:read',
  'agents:read',
  'commerce:read',
  'audit:read',
]
const DAY_MS = 86_400_000
const HISTORY_DAYS = 365
/** Sessions and refresh tokens began within the last days and are valid for the rest of their week. */
const SESSION_DAYS = 7
const IDLE_SECS = 7 * 86_400
/** The time in the ids of the first tenant, 2026-01-01. Each further tenant is a second later. */
const FIRST_ID_MS = 1_767_225_600_000

export type Plan = {
  readonly seed: string
  readonly usersPerTenant: number
  /** The hash of the password of all users. */
  readonly passwordHash: string
  readonly issuer: string
  readonly now: Date
}

/** What a program needs to use a seeded tenant. */
export type TenantAccess = {
  readonly tenant_id: string
  readonly tenant_slug: string
  /** The owner. All users have the same password. */
  readonly email: string
  readonly client_id: string
  readonly client_secret: string
}

export type SeededTenant = {
  readonly index: number
  readonly id: string
  readonly random: Random
  readonly access: TenantAccess
  readonly rows: Readonly<Record<SeededTable, SeedRow[]>>
  readonly events: readonly NewEvent[]
  /** The webhook of the tenant. Its secret is sealed and added before the rows are written. */
  readonly webhook: { readonly id: string; readonly secret: string } | undefined
  readonly hasShop: boolean
}

/** Distinguishes the names of two seeds in one database. */
function tagOf(seed: string): string {
  return createHash('sha256').update(`svc-seed-tag\0${seed}`).digest('hex').slice(0, 6)
}

/** The id of a tenant, without the rest of it. */
export function tenantIdOf(seed: string, index: number): string {
  return randomOf(seed, index).uuid()
}

function randomOf(seed: string, index: number): Random {
  return seededRandom(seed, `tenant ${index}`, FIRST_ID_MS + index * 1000)
}

/** Builds the rows and events of the tenant with this number, from 0. */
export function mixedTenant(plan: Plan, index: number): SeededTenant {
  const { seed, usersPerTenant } = plan
  const random = randomOf(seed, index)
  const id = random.uuid()
  const tag = tagOf(seed)
  const makes = new Maker(plan, random, id)
  const organizationId = random.uuid()
  const isSandbox = index % EVERY.sandbox === 0
  const createdAt = makes.ago(HISTORY_DAYS * DAY_MS)
  const slug = `seed-${tag}-${index}`
  const named = { name: `Seeded ${index}`, slug, created_at: createdAt, updated_at: createdAt }
  makes.row('organizations', { id: organizationId, ...named })
  makes.row('tenants', {
    id,
    organization_id: organizationId,
    ...named,
    environment: isSandbox ? 'sandbox' : 'production',
    status: 'active',
    admit_agents: isSandbox,
    settings: {},
  })
  const web = makes.webApplication()
  const backend = makes.backendApplication()
  for (let agent = 0; agent < AGENTS_PER_TENANT; agent += 1) makes.agent(agent)
  const emailOf = (user: number) => `user-${user}@t${index}.${tag}.example`
  for (let user = 0; user < usersPerTenant; user += 1) {
    makes.user({ number: user, email: emailOf(user), organizationId, clientId: web })
  }
  const webhook = index % EVERY.webhook === 0 ? makes.webhook() : undefined
  return {
    index,
    id,
    random,
    access: {
      tenant_id: id,
      tenant_slug: slug,
      email: emailOf(0),
      client_id: backend.id,
      client_secret: backend.secret,
    },
    rows: makes.rows,
    events: makes.events.toSorted((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime()),
    webhook,
    hasShop: index % EVERY.shop === 0,
  }
}

type UserWish = {
  readonly number: number
  readonly email: string
  readonly organizationId: string
  readonly clientId: string
}

/** Collects the rows and events of one tenant. */
class Maker {
  readonly rows = Object.fromEntries(
    SEEDED_TABLES.map((table) => [table, [] as SeedRow[]]),
  ) as Record<SeededTable, SeedRow[]>
  readonly events: NewEvent[] = []
  readonly #plan: Plan
  readonly #random: Random
  readonly #tenantId: string

  constructor(plan: Plan, random: Random, tenantId: string) {
    this.#plan = plan
    this.#random = random
    this.#tenantId = tenantId
  }

  row(table: SeededTable, row: SeedRow): void {
    this.rows[table].push(row)
  }

  /** A time within the last `ms`. */
  ago(ms: number): Date {
    return new Date(this.#plan.now.getTime() - Math.floor(this.#share() * ms))
  }

  webApplication(): string {
    const id = this.#random.uuid()
    this.row('applications', {
      ...this.#application(id, 'Web'),
      client_type: 'public',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['https://app.example.com/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      scopes: [...DEFAULT_SCOPES, 'offline_access'],
      require_pkce: true,
    })
    return id
  }

  backendApplication(): { readonly id: string; readonly secret: string } {
    const id = this.#random.uuid()
    const secret = `svcs_${this.#random.token(32)}`
    const row = this.#application(id, 'Backend')
    this.row('applications', {
      ...row,
      client_type: 'confidential',
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [],
      grant_types: ['client_credentials'],
      response_types: [],
      scopes: BACKEND_SCOPES,
      require_pkce: false,
    })
    this.row('application_secrets', {
      tenant_id: this.#tenantId,
      application_id: id,
      id,
      secret_sha256: hex(clientSecretSha256(secret)),
      created_at: row.created_at,
    })
    return { id, secret }
  }

  #application(id: string, name: string) {
    const createdAt = this.ago(HISTORY_DAYS * DAY_MS)
    return {
      tenant_id: this.#tenantId,
      id,
      name,
      audience: defaultAudience(id),
      created_at: createdAt,
      updated_at: createdAt,
    }
  }

  agent(number: number): void {
    const id = this.#random.uuid()
    const { x = '' } = createPublicKey(ed25519KeyOf(this.#random.bytes(32))).export({
      format: 'jwk',
    })
    const raw = Buffer.from(x, 'base64url')
    const keyId = fingerprint(publicJwk(raw, 'ed25519'))
    const did = didKey(raw, 'ed25519')
    const createdAt = this.ago(HISTORY_DAYS * DAY_MS)
    const tenantId = this.#tenantId
    const scopes = REGISTERED_AGENT_SCOPES
    const name = `Agent ${number}`
    this.row('agents', {
      tenant_id: tenantId,
      id,
      name,
      scopes,
      created_at: createdAt,
      updated_at: createdAt,
    })
    this.row('agent_keys', {
      tenant_id: tenantId,
      fingerprint: keyId,
      agent_id: id,
      algorithm: 'ed25519',
      public_key: hex(raw),
      created_at: createdAt,
    })
    this.row('agent_anchors', {
      tenant_id: tenantId,
      agent_id: id,
      type: 'did_key',
      value: did,
      fingerprint: keyId,
      verified_at: createdAt,
    })
    const agent = {
      id: id as AgentId,
      tenantId: tenantId as TenantId,
      name,
      did,
      fingerprint: keyId as KeyFingerprint,
      createdAt,
    }
    this.events.push(agentRegistered(this.#random.uuid(), agent, undefined))
    const sessionId = this.#random.uuid()
    this.#tokens({
      sessionId,
      browserSessionId: null,
      subject: id,
      subjectType: 'agent',
      clientId: id,
      keyId,
      organizationId: null,
      scopes,
      amr: ['pop'],
      level: null,
      from: this.ago(DAY_MS / 2),
      until: new Date(this.#plan.now.getTime() + DAY_MS / 2),
    })
  }

  user({ number, email, organizationId, clientId }: UserWish): void {
    const random = this.#random
    const tenantId = this.#tenantId
    const accountId = random.uuid()
    const subject = random.token(24)
    const createdAt = this.ago(HISTORY_DAYS * DAY_MS)
    const status = number === 0 ? 'active' : this.#statusOfUser()
    const isIn = status === 'active' && (number === 0 || this.#share() < 0.4)
    const signedInAt = isIn ? this.ago(SESSION_DAYS * DAY_MS) : null
    const stamps = { created_at: createdAt, updated_at: createdAt }
    this.row('accounts', {
      id: accountId,
      email,
      email_key: email,
      email_verified: true,
      display_name: `User ${number}`,
      password_hash: this.#plan.passwordHash,
      password_changed_at: createdAt,
      status: 'active',
      ...stamps,
    })
    const id = random.uuid()
    this.row('tenant_users', {
      tenant_id: tenantId,
      id,
      account_id: accountId,
      sub: subject,
      status,
      roles: number === 0 ? ['owner'] : number <= ADMINS ? ['admin'] : [],
      ...stamps,
      last_login_at: signedInAt,
      suspended_from: status === 'suspended' ? 'active' : null,
    })
    if (number <= ADMINS) {
      this.row('organization_members', {
        organization_id: organizationId,
        member_type: 'account',
        member_id: accountId,
        role: number === 0 ? 'owner' : 'admin',
        created_at: createdAt,
        id: random.uuid(),
      })
    }
    const parties = { actor: { type: 'human', id: subject }, resource: { type: 'tenant_user', id } }
    if (status !== 'invited')
      this.#event('tenant_user.activated', createdAt, parties, { status: 'active' })
    if (signedInAt !== null)
      this.#signedIn({ accountId, subject, organizationId, clientId, signedInAt })
  }

  #signedIn(person: {
    readonly accountId: string
    readonly subject: string
    readonly organizationId: string
    readonly clientId: string
    readonly signedInAt: Date
  }): void {
    const { accountId, subject, organizationId, clientId, signedInAt } = person
    const random = this.#random
    const sessionId = random.uuid()
    const until = new Date(signedInAt.getTime() + SESSION_DAYS * DAY_MS + DAY_MS)
    this.row('browser_sessions', {
      tenant_id: this.#tenantId,
      id: sessionId,
      account_id: accountId,
      token_sha256: hex(sha256(random.token(32))),
      level: 1,
      pending: false,
      amr: ['pwd'],
      auth_time: signedInAt,
      password_at: signedInAt,
      idle_secs: IDLE_SECS,
      user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      address: `192.0.2.${Math.floor(this.#share() * 254) + 1}`,
      created_at: signedInAt,
      last_seen_at: signedInAt,
      expires_at: until,
    })
    const scopes = [...DEFAULT_SCOPES, 'offline_access']
    this.row('consents', {
      tenant_id: this.#tenantId,
      subject,
      client_id: clientId,
      scopes,
      created_at: signedInAt,
      updated_at: signedInAt,
    })
    this.#event(
      'auth.login.success',
      signedInAt,
      { actor: { type: 'human', id: subject }, resource: { type: 'session', id: sessionId } },
      { amr: ['pwd'], acr: 'aal1' },
    )
    this.#tokens({
      sessionId,
      browserSessionId: sessionId,
      subject,
      subjectType: 'human',
      clientId,
      keyId: null,
      organizationId,
      scopes,
      amr: ['pwd'],
      level: 1,
      from: signedInAt,
      until,
    })
  }

  /** A session with its refresh token and the event of its access token. */
  #tokens(grant: {
    readonly sessionId: string
    readonly browserSessionId: string | null
    readonly subject: string
    readonly subjectType: 'human' | 'agent'
    readonly clientId: string
    readonly keyId: string | null
    readonly organizationId: string | null
    readonly scopes: readonly string[]
    readonly amr: readonly string[]
    readonly level: number | null
    readonly from: Date
    readonly until: Date
  }): void {
    const { sessionId, subject, subjectType, clientId, organizationId, scopes, from, until } = grant
    const random = this.#random
    const familyId = random.uuid()
    const tenant_id = this.#tenantId
    const isHuman = subjectType === 'human'
    const audience = [isHuman ? defaultAudience(clientId) : this.#plan.issuer]
    this.row('sessions', {
      tenant_id,
      id: sessionId,
      subject,
      subject_type: subjectType,
      agent_id: isHuman ? null : subject,
      client_id: clientId,
      organization_id: organizationId,
      key_fingerprint: grant.keyId,
      amr: grant.amr,
      auth_time: from,
      created_at: from,
      expires_at: until,
    })
    this.row('refresh_families', {
      tenant_id,
      id: familyId,
      session_id: sessionId,
      client_id: clientId,
      scopes,
      audience,
      created_at: from,
      expires_at: until,
      subject: isHuman ? subject : null,
      level: grant.level,
      amr: isHuman ? grant.amr : null,
      auth_time: isHuman ? from : null,
      browser_session_id: grant.browserSessionId,
    })
    this.row('refresh_tokens', {
      tenant_id,
      family_id: familyId,
      generation: 0,
      token_sha256: hex(sha256(random.token(32))),
      issued_at: from,
    })
    const resource = { type: 'token', id: random.uuid() }
    this.#event(
      'auth.token.issued',
      from,
      { actor: { type: isHuman ? 'user' : 'agent', id: subject }, resource },
      {
        audience,
        client_id: clientId,
        expires_at: new Date(from.getTime() + 900_000).toISOString(),
        grant: isHuman ? 'authorization_code' : 'agent_login',
        scope: scopes.join(' '),
        session_id: sessionId,
        sub: subject,
        subject_type: subjectType,
      },
    )
  }

  /** An inactive webhook, so that a seeded database sends nothing. */
  webhook(): { readonly id: string; readonly secret: string } {
    const id = this.#random.uuid()
    const tenant_id = this.#tenantId
    const createdAt = this.ago(HISTORY_DAYS * DAY_MS)
    this.row('webhooks', {
      tenant_id,
      id,
      url: 'https://receiver.example.com/events',
      event_types: ['*'],
      active: false,
      secret_last_rotated_at: createdAt,
      created_at: createdAt,
      updated_at: createdAt,
    })
    this.row('webhook_lanes', { tenant_id, webhook_id: id })
    return { id, secret: `whsec_${Buffer.from(this.#random.bytes(32)).toString('base64')}` }
  }

  #statusOfUser(): 'active' | 'invited' | 'suspended' | 'removed' {
    const share = this.#share()
    if (share < 0.93) return 'active'
    if (share < 0.96) return 'invited'
    return share < 0.99 ? 'suspended' : 'removed'
  }

  #event<T extends EventType>(
    type: T,
    occurredAt: Date,
    parties: Pick<EventSubject, 'actor' | 'resource'>,
    fields: EventFields<T>,
  ): void {
    const stamp = { id: this.#random.uuid(), tenantId: this.#tenantId, occurredAt }
    this.events.push({
      ...stamp,
      ...catalogued(type, { ...parties, requestId: undefined }, fields),
    })
  }

  /** From 0 to less than 1. */
  #share(): number {
    return Buffer.from(this.#random.bytes(4)).readUInt32BE() / 2 ** 32
  }
}

function hex(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes).toString('hex')}`
}

function sha256(text: string): Uint8Array {
  return createHash('sha256').update(text, 'utf8').digest()
}
