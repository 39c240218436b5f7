/** The types of events, what each deployment offers of them, and how an event is made. */
import type { z } from 'zod'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import { actorOf, type AuditParty, type Caller, doneBy } from './audit.js'
import type { DelegationIntent } from './agents/delegation-intent.js'
import { EVENT_CATALOGUE } from './event-catalogue.js'
import type { AgentId, KeyFingerprint, TenantId } from './ids.js'

type Catalogue = typeof EVENT_CATALOGUE
type EventCategory = keyof Catalogue
export type EventType = { [C in EventCategory]: keyof Catalogue[C] }[EventCategory]

type MembersOf<T extends EventType> = {
  [C in EventCategory]: T extends keyof Catalogue[C] ? Catalogue[C][T] : never
}[EventCategory]
type Given<Value> = Value extends readonly (infer Item)[] ? readonly Item[] : Value
type ValueOf<Member> = Member extends readonly [infer Schema extends z.ZodType, ...unknown[]]
  ? Given<z.infer<Schema>>
  : never
type Optional<Members> = {
  [Name in keyof Members]: undefined extends ValueOf<Members[Name]> ? Name : never
}[keyof Members]
type FieldsOf<Members> = keyof Members extends never
  ? Record<string, never>
  : { [Name in Exclude<keyof Members, Optional<Members>>]: ValueOf<Members[Name]> } & {
      [Name in Optional<Members>]?: ValueOf<Members[Name]>
    }
/** The members of an event besides actor, resource and request id, as the catalogue has them. */
export type EventFields<T extends EventType> = T extends EventType ? FieldsOf<MembersOf<T>> : never

export const EVENT_TYPES = Object.values(EVENT_CATALOGUE).flatMap(
  (types) => Object.keys(types) as EventType[],
)

/** Optional features with their own events. */
type EventFeatures = {
  readonly commerce: boolean
  /** Sign-in with identity providers of the deployment or of tenants. */
  readonly sso: boolean
  /** Sign-in with identity providers of tenants. */
  readonly enterpriseSso: boolean
  /** Second factors by risk. */
  readonly adaptiveMfa: boolean
  /** Provisioning by directories. */
  readonly scim: boolean
  /** API keys of tenants. */
  readonly apiKeys: boolean
  /** Plans of organizations. */
  readonly billing: boolean
  /** Wallets of agents. */
  readonly wallet: boolean
  /** Configured chains, whose registries may list agents. */
  readonly chains: boolean
}

/** The event types of a deployment, in catalogue order. */
export function offeredEventTypes(features: EventFeatures): readonly EventType[] {
  return EVENT_TYPES.filter((type) => {
    if (type.startsWith('commerce.')) return features.commerce
    if (type === 'sso.user.provisioned') return features.sso || features.scim
    if (type === 'auth.adaptive_mfa.triggered') return features.adaptiveMfa
    if (type.startsWith('wallet.')) return features.wallet
    if (type.startsWith('chain.')) return features.chains
    if (type.startsWith('api_key.')) return features.apiKeys
    if (type === 'org.billing.changed') return features.billing
    if (type === 'sso.configured') return features.enterpriseSso
    return !type.startsWith('sso.') || features.sso
  })
}

/** An event for the outbox. */
export type NewEvent = {
  readonly id: string
  readonly tenantId: string
  readonly type: EventType
  readonly occurredAt: Date
  readonly data: Record<string, unknown>
  /** Further members of the audit event. Receivers get `delegation` alone, in the data. */
  readonly audit?: {
    readonly subject?: AuditParty
    readonly actors?: readonly AuditParty[]
    readonly clientId?: string | null
    readonly grantId?: string | null
    readonly delegationId?: string | null
    readonly delegation?: DelegationIntent | undefined
    readonly ip?: string
  }
}

/** The actor and the resource of an event. */
export type EventSubject = {
  readonly actor: { readonly type: string; readonly id: string }
  readonly resource: { readonly type: string; readonly id: string }
  readonly requestId: string | undefined
}

/**
 * Type and data of an event: actor, resource, request id, and the fields that the catalogue has for the type. Other fields do
 * not compile.
 */
export function catalogued<T extends EventType>(
  type: T,
  { actor, resource, requestId }: EventSubject,
  fields: EventFields<T>,
): { readonly type: T; readonly data: Record<string, unknown> } {
  return { type, data: { actor, resource, request_id: requestId ?? null, ...fields } }
}

/** Who did something in a request, and when. */
export type EventContext = {
  readonly caller: Caller
  readonly random: Random
  readonly now: Date
  readonly requestId: string | undefined
}

/** What the caller of a message does now. */
export const eventContext = (
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  caller: Caller,
  { requestId }: { readonly requestId: string | undefined },
): EventContext => ({ caller, random, now: clock.now(), requestId })

/** An event about what a caller did. @param tenantId default: the tenant of the caller. */
export function eventBy<T extends EventType>(
  type: T,
  resource: EventSubject['resource'],
  { caller, random, now, requestId }: EventContext,
  fields: EventFields<T>,
  tenantId: string = caller.principal.tenantId,
) {
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(type, { actor: actorOf(caller), resource, requestId }, fields),
    audit: doneBy(caller),
  }
}

/** admin.agent.registered, with the agent as actor. `id` is the id of the event. */
export function agentRegistered(
  id: string,
  agent: {
    readonly id: AgentId
    readonly tenantId: TenantId
    readonly name: string
    readonly did: string
    readonly fingerprint: KeyFingerprint
    readonly createdAt: Date
  },
  requestId: string | undefined,
): NewEvent {
  const itself = { type: 'agent', id: agent.id }
  return {
    id,
    tenantId: agent.tenantId,
    occurredAt: agent.createdAt,
    ...catalogued(
      'admin.agent.registered',
      { actor: itself, resource: itself, requestId },
      { name: agent.name, did: agent.did, key_id: agent.fingerprint },
    ),
  }
}
