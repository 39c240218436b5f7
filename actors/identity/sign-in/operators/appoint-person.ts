/**
 * Deployment operators who are people: users of the control plane with deployment-wide scopes. Only the command line of
 * the deployment appoints and dismisses them, no HTTP route does.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { soughtEmail } from '../../../domain/email.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  findOperatorAccount,
  lockOperatorScopes,
  setOperatorScopes,
} from '../../../../storage/identity/console/operators.js'
import {
  activateWithRole,
  endHumanSessions,
  findTenantUserOfAccount,
  findTenantUserOfAccountSub,
} from '../../../../storage/identity/tenant-users.js'
import { findControlPlane } from '../../../../storage/identity/tenants.js'
import { withoutCaller } from '../../../domain/audit.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { insertActiveUser } from '../joining.js'
import { APPOINTED_SCOPES, type AppointedScope } from '../../../domain/scopes.js'

/** An operator is a member of the control plane: the appointed scopes are all that is added. */
const ROLE = 'member'

export type PersonAppointment = {
  readonly email: string
  readonly to: 'appointed' | 'dismissed'
  /** The scopes to add or remove. */
  readonly scopes: readonly AppointedScope[]
}

type PersonAppointed =
  | { readonly tag: 'appointed' | 'dismissed' }
  /** No active account has the address. */
  | { readonly tag: 'unknown_account' }
  /** Anybody may have typed an address that is not verified. */
  | { readonly tag: 'unverified' }
  /** The control plane has suspended the user. */
  | { readonly tag: 'suspended' }
  | { readonly tag: 'no_control_plane' }

type Tools = { readonly clock: Clock; readonly random: Random }

/** Needs a transaction that crosses tenants. Dismissal ends the person's sessions in the control plane. */
export async function appointPerson(
  tx: Transaction,
  tools: Tools,
  { email, to, scopes }: PersonAppointment,
): Promise<PersonAppointed> {
  const controlPlane = await findControlPlane(tx)
  if (controlPlane === undefined) return { tag: 'no_control_plane' }
  const sought = soughtEmail(email)
  const account = sought && (await findOperatorAccount(tx, sought))
  if (account === undefined) return { tag: 'unknown_account' }
  if (to === 'appointed' && !account.emailVerified) return { tag: 'unverified' }
  const tenantId = controlPlane.id
  const before = await lockOperatorScopes(tx, account.id)
  const isNamed = (scope: AppointedScope) => scopes.includes(scope)
  const after = APPOINTED_SCOPES.filter((scope) =>
    to === 'appointed'
      ? before.includes(scope) || isNamed(scope)
      : before.includes(scope) && !isNamed(scope),
  )
  const accountId = account.id
  if (to === 'dismissed') {
    const known = await findTenantUserOfAccount(tx, tenantId, accountId)
    const sub = await findTenantUserOfAccountSub(tx, tenantId, accountId)
    if (known === undefined || sub === undefined) return { tag: 'unknown_account' }
    await setAppointed(tx, tools, { tenantId, accountId, userId: known.id, scopes: after })
    const user = { tenantId, sub, accountId }
    await endHumanSessions(tx, user, 'scopes_narrowed', tools.clock.now())
    return { tag: to }
  }
  const person = await asMember(tx, tools, tenantId, accountId)
  if (person === undefined) return { tag: 'suspended' }
  await setAppointed(tx, tools, { tenantId, accountId, userId: person.id, scopes: after })
  return { tag: to }
}

/** Writes the scopes of an operator, with the audit event. */
export async function setAppointed(
  tx: Transaction,
  { clock, random }: Tools,
  {
    tenantId,
    accountId,
    userId,
    scopes,
  }: {
    readonly tenantId: string
    readonly accountId: string
    readonly userId: string
    readonly scopes: readonly string[]
  },
): Promise<void> {
  const now = clock.now()
  const before = await lockOperatorScopes(tx, accountId)
  await setOperatorScopes(tx, accountId, scopes, now)
  appendAudit(tx, [
    withoutCaller({
      id: random.uuid(),
      tenantId,
      type: 'admin.user.updated',
      occurredAt: now,
      resource: { type: 'tenant_user', id: userId },
      data: { scopes: [...scopes], scopes_before: [...before] },
    }),
  ])
}

/** The active user of the account in the control plane. Undefined if it is suspended there. */
async function asMember(
  tx: Transaction,
  { clock, random }: Tools,
  tenantId: string,
  accountId: string,
): Promise<{ readonly id: string; readonly sub: string } | undefined> {
  const now = clock.now()
  if ((await findTenantUserOfAccount(tx, tenantId, accountId)) !== undefined)
    return activateWithRole(tx, tenantId, accountId, ROLE, now)
  return insertActiveUser(tx, random, { tenantId, accountId, roles: [ROLE] }, now)
}
