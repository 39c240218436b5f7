/** What signals follow from a record of the audit log: one table, by the type of the record. */
import type { CauseRow } from '../../../storage/webhooks/signal-events.js'
import type { AuditOnlyType } from '../../domain/audit.js'
import type { EventType } from '../../domain/events.js'
import {
  ACCOUNT_DISABLED,
  ACCOUNT_ENABLED,
  ACCOUNT_PURGED,
  CREDENTIAL_CHANGE,
  CREDENTIAL_CHANGE_REQUIRED,
  RECOVERY_INFORMATION_CHANGED,
  RISK_LEVEL_CHANGE,
  SESSION_ESTABLISHED,
  SESSION_REVOKED,
  TOKEN_CLAIMS_CHANGE,
} from '../../domain/webhooks/signals.js'

/** Whom a signal is about. */
export type Who = {
  /** The `sub` of a user, or the row whose `sub` it is. */
  readonly user?: { readonly sub: string } | { readonly rowId: string }
  readonly agentId?: string
  readonly sessionId?: string
  readonly delegationId?: string
}
export type Signal = {
  readonly type: string
  readonly who: Who
  /** The subject names session and tenant too. */
  readonly isComplex: boolean
  readonly event: Readonly<Record<string, unknown>>
}
type Signals = readonly (Signal | null)[]

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
const number = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** The person who acts, in the session that the record is about. */
function personOf({ subject, resource }: CauseRow): Who | null {
  if (subject?.subject_type !== 'human') return null
  const sessionId = resource?.type === 'session' ? { sessionId: resource.id } : {}
  return { user: { sub: subject.sub }, ...sessionId }
}

/** The user who changed something about the account. */
const selfOf = ({ resource }: CauseRow): Who | null =>
  resource?.type === 'human' ? { user: { sub: resource.id } } : null

const agentOf = ({ resource }: CauseRow): Who | null =>
  resource?.type === 'agent' ? { agentId: resource.id } : null

/** The user that the record is about. */
const userOf = ({ resource }: CauseRow): Who | null =>
  resource?.type === 'tenant_user' ? { user: { rowId: resource.id } } : null

/** The subject of a token. */
function holderOf({ data }: CauseRow): Who | null {
  const sub = text(data['sub'])
  const sessionId = text(data['session_id'])
  return sub === undefined || sessionId === undefined ? null : { user: { sub }, sessionId }
}

type Initiator = 'admin' | 'user' | 'policy' | 'system'

/** Administrators act on others. */
const byAdmin = ({ subject }: CauseRow): Initiator => (subject === null ? 'system' : 'admin')

/** A CAEP event. `reason_admin` must not be empty. */
function caep(
  type: string,
  { occurredAt }: CauseRow,
  who: Who | null,
  [initiator, reason]: readonly [Initiator, string],
  members: Readonly<Record<string, unknown>> = {},
): Signal | null {
  if (who === null) return null
  return {
    type,
    who,
    isComplex: type === SESSION_REVOKED || type === SESSION_ESTABLISHED,
    event: {
      event_timestamp: Math.floor(occurredAt.getTime() / 1000),
      initiating_entity: initiator,
      reason_admin: { en: reason },
      ...members,
    },
  }
}

const risc = (type: string, who: Who | null): Signal | null =>
  who === null ? null : { type, who, isComplex: false, event: {} }

/** The credential type of each method that a person enrols. */
const CREDENTIALS: Readonly<Record<string, string>> = { passkey: 'fido2-platform', totp: 'app' }

function enrolled(cause: CauseRow): Signals {
  const type = CREDENTIALS[text(cause.data['method']) ?? '']
  if (cause.data['enrolled'] !== true || type === undefined) return []
  const members = { credential_type: type, change_type: 'create' }
  const why = ['user', 'A second factor was added'] as const
  return [caep(CREDENTIAL_CHANGE, cause, withoutSession(personOf(cause)), why, members)]
}

const withoutSession = (who: Who | null): Who | null =>
  who?.user === undefined ? null : { user: who.user }

function factorsReset(cause: CauseRow): Signals {
  const why = ['admin', 'An administrator removed second factors'] as const
  return (['passkeys', 'authenticators'] as const).map((name) => {
    const type = CREDENTIALS[name === 'passkeys' ? 'passkey' : 'totp']
    if (number(cause.data[name]) === 0) return null
    const members = { credential_type: type, change_type: 'delete' }
    return caep(CREDENTIAL_CHANGE, cause, userOf(cause), why, members)
  })
}

const risk = (principal: string, level: string, reason: string) => ({
  principal,
  current_level: level,
  risk_reason: reason,
})

/** All sessions of a user or an agent end with it. */
const ended = (cause: CauseRow, change: string, who: Who | null, reason: string): Signals => [
  risc(change, who),
  caep(SESSION_REVOKED, cause, who, [byAdmin(cause), reason]),
]

const passwordChanged = (cause: CauseRow): Signals => {
  const members = { credential_type: 'password', change_type: 'update' }
  const why = ['user', 'The password was changed'] as const
  return [caep(CREDENTIAL_CHANGE, cause, selfOf(cause), why, members)]
}

const agentKey =
  (change: string, reason: string) =>
  (cause: CauseRow): Signals => {
    const members = { credential_type: 'public-key', change_type: change }
    return [caep(CREDENTIAL_CHANGE, cause, agentOf(cause), [byAdmin(cause), reason], members)]
  }

function rolesChanged(cause: CauseRow): Signals {
  const { roles } = cause.data
  if (!Array.isArray(roles)) return []
  const why = [byAdmin(cause), 'The roles of the user were changed'] as const
  return [caep(TOKEN_CLAIMS_CHANGE, cause, userOf(cause), why, { claims: { roles } })]
}

function established(cause: CauseRow): Signals {
  const { acr, amr } = cause.data
  const members = { ...(acr === undefined ? {} : { acr }), ...(amr === undefined ? {} : { amr }) }
  const who = personOf(cause)
  if (who?.sessionId === undefined) return []
  return [caep(SESSION_ESTABLISHED, cause, who, ['user', 'The user signed in'], members)]
}

function delegationEnded(cause: CauseRow): Signals {
  const [sub, agentId, delegationId] = ['sub', 'agent_id', 'delegation_id'].map((name) =>
    text(cause.data[name]),
  )
  if (sub === undefined || agentId === undefined || delegationId === undefined) return []
  const who = { user: { sub }, agentId, delegationId }
  const isOwn = cause.subject?.sub === sub
  const why = [isOwn ? 'user' : byAdmin(cause), 'A delegation to an agent ended'] as const
  return [caep(SESSION_REVOKED, cause, who, why)]
}

const CAUSES: Readonly<Partial<Record<EventType | AuditOnlyType, (cause: CauseRow) => Signals>>> = {
  'auth.login.success': established,
  'auth.logout': (cause) => {
    const isRevoked = cause.data['reason'] === 'revoked'
    const why = [isRevoked ? 'admin' : 'user', 'The session ended'] as const
    return [caep(SESSION_REVOKED, cause, personOf(cause), why)]
  },
  'auth.token.revoked': (cause) => [
    caep(SESSION_REVOKED, cause, holderOf(cause), ['user', 'The tokens of an application ended']),
  ],
  'auth.mfa.verify': enrolled,
  'auth.adaptive_mfa.triggered': (cause) => [
    caep(
      RISK_LEVEL_CHANGE,
      cause,
      withoutSession(personOf(cause)),
      ['policy', 'A sign-in was unlike those before'],
      risk('USER', 'MEDIUM', 'UNFAMILIAR_SIGN_IN'),
    ),
  ],
  'security.brute_force.detected': (cause) => [
    caep(
      RISK_LEVEL_CHANGE,
      cause,
      withoutSession(personOf(cause)),
      ['policy', 'Someone guesses credentials of the user'],
      risk('USER', 'HIGH', 'BRUTE_FORCE'),
    ),
  ],
  'security.refresh_token.reuse': (cause) => [
    caep(
      RISK_LEVEL_CHANGE,
      cause,
      holderOf(cause),
      ['policy', 'A refresh token was used twice'],
      risk('SESSION', 'HIGH', 'TOKEN_REUSE'),
    ),
    caep(SESSION_REVOKED, cause, holderOf(cause), ['policy', 'A refresh token was used twice']),
  ],
  'tenant_user.suspended': (cause) =>
    ended(cause, ACCOUNT_DISABLED, userOf(cause), 'The user was suspended'),
  'tenant_user.removed': (cause) =>
    ended(cause, ACCOUNT_PURGED, userOf(cause), 'The user was removed'),
  'tenant_user.activated': (cause) => [risc(ACCOUNT_ENABLED, userOf(cause))],
  'admin.user.password_reset': (cause) => [risc(CREDENTIAL_CHANGE_REQUIRED, userOf(cause))],
  'admin.user.factors_reset': factorsReset,
  'admin.user.updated': rolesChanged,
  'account.password.changed': passwordChanged,
  'account.password.reset': passwordChanged,
  'account.recovery_codes.replaced': (cause) => [risc(RECOVERY_INFORMATION_CHANGED, selfOf(cause))],
  'admin.delegation.revoked': delegationEnded,
  'admin.agent.suspended': (cause) =>
    ended(cause, ACCOUNT_DISABLED, agentOf(cause), 'The agent was suspended'),
  'admin.agent.activated': (cause) => [risc(ACCOUNT_ENABLED, agentOf(cause))],
  'admin.agent.deleted': (cause) =>
    ended(cause, ACCOUNT_PURGED, agentOf(cause), 'The agent was deleted'),
  'admin.agent.key.added': agentKey('create', 'A key of the agent was added'),
  'admin.agent.key.deprecated': agentKey('update', 'A key of the agent was deprecated'),
  'admin.agent.key.revoked': agentKey('revoke', 'A key of the agent was revoked'),
}

export const CAUSE_TYPES: readonly string[] = Object.keys(CAUSES)

/** Failures are no cause, unless the failure itself is the news. */
export function signalsOf(cause: CauseRow): readonly Signal[] {
  if (cause.outcome !== 'success' && !cause.type.startsWith('security.')) return []
  const signals = CAUSES[cause.type as EventType | AuditOnlyType]?.(cause) ?? []
  return signals.filter((one) => one !== null)
}
