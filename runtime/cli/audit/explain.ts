/** `svc audit explain`: who did a request, through whom, for what, by which grant or rule, and the outcome. */
import { delegationIntent } from '../../../actors/domain/agents/delegation-intent.js'
import { isUuid } from '../../../actors/domain/ids.js'
import { type DelegationRow, findDelegation } from '../../../storage/agents/delegations.js'
import { nameAudited } from '../../../storage/operations/audit-names.js'
import {
  eventsOfRequest,
  type TracedEvent,
  type UsedGrant,
  usedGrants,
} from '../../../storage/operations/request-trace.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type DatabaseCommandHost, requireRequestId } from '../trace.js'

/** A person, agent, application or object; without a name if it has none or is gone. */
type Named = { readonly type: string; readonly id: string; readonly name: string | null }

type Purpose = {
  readonly delegation_id: string
  /** Null: the agent stated none, or the delegation is deleted. */
  readonly purpose: string | null
  readonly purpose_hash: string | null
  readonly policy_hash: string | null
  /** Whether the purpose has the hash that the event recorded. Null where the event or the purpose has none. */
  readonly purpose_matches: boolean | null
}

/** What permitted or refused it. */
type Authority = {
  readonly kind: UsedGrant['kind'] | 'grant' | 'delegation' | 'access_policy' | 'rule' | 'approval'
  readonly id: string
  readonly detail: string | null
}

type Explained = {
  readonly at: string
  readonly event_id: string
  readonly tenant_id: string
  readonly action: string
  readonly outcome: string
  readonly who: Named | null
  /** The act chain, outermost first. */
  readonly through: readonly Named[]
  readonly client_id: string | null
  readonly resource: Named | null
  readonly for: Purpose | null
  readonly by: readonly Authority[]
}

/** @throws with a message for an operator, also for an id that no event has. */
export async function explain(
  requestId: string,
  open: DatabaseCommandHost['open'],
): Promise<readonly Explained[]> {
  requireRequestId(requestId)
  const { database, close } = await open()
  try {
    // Crosses tenants: the tenant of a request is not known.
    const explained = await database.system(async (tx) => {
      const events = await eventsOfRequest(tx, requestId, { since: null, until: null })
      const all: Explained[] = []
      for (const tenantId of new Set(events.map((event) => event.tenantId)))
        all.push(
          ...(await ofTenant(
            tx,
            tenantId,
            events.filter((event) => event.tenantId === tenantId),
          )),
        )
      return all
    })
    if (explained.length === 0) throw new Error(`no audit event has the request id ${requestId}`)
    return explained
  } finally {
    await close()
  }
}

async function ofTenant(
  tx: Transaction,
  tenantId: string,
  events: readonly TracedEvent[],
): Promise<Explained[]> {
  const ids = new Set(
    events.flatMap(({ subject, actors, resource }) => [
      ...[subject, ...actors].flatMap((party) => party?.sub ?? []),
      ...(resource === null ? [] : [resource.id]),
    ]),
  )
  const uuids = [...ids].filter(isUuid)
  const names = new Map(
    (await nameAudited(tx, tenantId, uuids, [...ids])).map(({ id, name }) => [id, name]),
  )
  const grantIds = events.flatMap(({ grantId }) => (grantId && isUuid(grantId) ? grantId : []))
  const grants = new Map((await usedGrants(tx, tenantId, grantIds)).map((one) => [one.id, one]))
  const delegations = new Map<string, DelegationRow>()
  for (const { delegationId } of events) {
    if (delegationId === null || delegations.has(delegationId)) continue
    const row = await findDelegation(tx, tenantId, delegationId)
    if (row !== undefined) delegations.set(delegationId, row)
  }
  const named = (type: string, id: string): Named => ({ type, id, name: names.get(id) ?? null })
  return events.map((event) => {
    const { subject, actors, resource, delegationId } = event
    return {
      at: event.occurredAt.toISOString(),
      event_id: event.id,
      tenant_id: tenantId,
      action: event.type,
      outcome: event.outcome,
      who: subject && named(subject.subject_type, subject.sub),
      through: actors.map(({ sub, subject_type: type }) => named(type, sub)),
      client_id: event.clientId,
      resource: resource && named(resource.type, resource.id),
      for: delegationId === null ? null : purposeOf(event, delegationId, delegations),
      by: authoritiesOf(event, grants),
    }
  })
}

function purposeOf(
  { data }: TracedEvent,
  delegationId: string,
  delegations: ReadonlyMap<string, DelegationRow>,
): Purpose {
  const recorded = data['delegation'] as ReturnType<typeof delegationIntent> | undefined
  const row = delegations.get(delegationId)
  const intent = row && delegationIntent(row)
  const hash = recorded?.purpose_hash ?? null
  return {
    delegation_id: delegationId,
    purpose: row?.purpose ?? null,
    purpose_hash: hash,
    policy_hash: recorded?.policy_hash ?? null,
    purpose_matches: hash === null || intent === undefined ? null : intent.purpose_hash === hash,
  }
}

function authoritiesOf(
  { type, grantId, delegationId, resource, data }: TracedEvent,
  grants: ReadonlyMap<string, UsedGrant>,
): Authority[] {
  const by: Authority[] = []
  const text = (name: string) => (typeof data[name] === 'string' ? data[name] : null)
  const add = (kind: Authority['kind'], id: string | null, detail: string | null = null) => {
    if (id !== null) by.push({ kind, id, detail })
  }
  const grant = grantId === null ? undefined : grants.get(grantId)
  add(grant?.kind ?? 'grant', grantId, grant?.grantee ?? null)
  add('delegation', delegationId)
  if (type === 'auth.policy.denied') add('access_policy', resource?.id ?? null, text('policy'))
  add('rule', text('rule_id'))
  add('approval', text('approval_id'))
  return by
}

/** The events as text, each with a line for who, through whom, on what, for what and by what. */
export function explanationText(events: readonly Explained[]): string {
  return events.map(eventText).join('\n\n')
}

function eventText(event: Explained): string {
  const { who, through, resource, for: purpose } = event
  const lines = [
    `${event.at}  ${event.action}: ${event.outcome}`,
    ...(who === null ? [] : [`  who      ${shown(who)}`]),
    ...through.map((party) => `  through  ${shown(party)}`),
    ...(event.client_id === null ? [] : [`  client   ${event.client_id}`]),
    ...(resource === null ? [] : [`  on       ${shown(resource)}`]),
    ...(purpose === null ? [] : [`  for      ${purposeText(purpose)}`]),
    ...event.by.map(
      ({ kind, id, detail }) => `  by       ${kind} ${id}${detail === null ? '' : ` (${detail})`}`,
    ),
    `  tenant   ${event.tenant_id}`,
  ]
  return lines.join('\n')
}

const shown = ({ type, id, name }: Named) => `${type} ${name === null ? id : `${name} (${id})`}`

function purposeText({ purpose, purpose_matches: matches }: Purpose): string {
  if (purpose === null) return 'no stated purpose'
  const quoted = JSON.stringify(purpose)
  return matches === false ? `${quoted}, which is not what the event recorded` : quoted
}
