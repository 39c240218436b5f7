/**
 * Fast creation of users. A directory sends its users one by one, so requests that arrive during a commit share the next
 * one. Users that need a decision (an address with an account, roles, an invitation) are left to users.ts.
 */
import {
  type ProvisionedUser,
  provisionScimUsers,
} from '../../../storage/identity/scim-provisioning.js'
import type { ScimUserRow } from '../../../storage/identity/scim-users.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { parseEmail } from '../../domain/email.js'
import type { NewEvent } from '../../domain/events.js'
import { groupCommit } from '../../platform/batching/group-commit.js'
import { isReserved } from '../../platform/mail/reserved-domains.js'
import { domainOf } from '../../platform/mail/public-domains.js'
import type { Person } from './person.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

const SUBJECT_BYTES = 24

type ProvisioningNeeds = WriteNeeds

export function scimProvisioning({ database, clock, random }: ProvisioningNeeds) {
  // Accounts are global.
  const commits = groupCommit(database, { crossesTenants: true })

  return {
    /**
     * Creates a user that the tenant may vouch for, with the events of `eventsOf`.
     * @returns undefined if the user needs a decision. Nothing is written then.
     */
    async create(
      tenantId: string,
      person: Person,
      eventsOf: (userId: string) => readonly NewEvent[],
    ): Promise<ScimUserRow | undefined> {
      const { email, roles, active } = person
      if (email === null || parseEmail(email) === undefined || roles.length > 0 || active === false)
        return undefined
      const input: ProvisionedUser = {
        userName: person.userName,
        externalId: person.externalId,
        attributes: person.attributes,
        displayName: person.displayName,
        profile: person.profile,
        email,
        domain: domainOf(email) ?? null,
        reserved: isReserved(email),
        accountId: random.uuid(),
        userId: random.uuid(),
        sub: random.token(SUBJECT_BYTES),
        createdAt: clock.now(),
      }
      const events = (row: ScimUserRow | undefined) => (row === undefined ? [] : eventsOf(row.id))
      try {
        return await commits.decide(tenantId, { row: email, decide: provisionAll, input, events })
      } catch (error) {
        // Another request took the name or the address at the same moment.
        if ((error as { constraint?: unknown }).constraint !== undefined) return undefined
        throw error
      }
    },
  }
}

/** The row of each user, undefined for those that were not written. */
async function provisionAll(
  tx: Transaction,
  tenantId: string,
  inputs: readonly ProvisionedUser[],
): Promise<readonly (ScimUserRow | undefined)[]> {
  // The first of several users with one name is written here, the others are refused alone.
  const byName = new Map<string, ProvisionedUser>()
  for (const user of inputs) {
    const name = user.userName.toLowerCase()
    if (!byName.has(name)) byName.set(name, user)
  }
  const written = await provisionScimUsers(tx, tenantId, [...byName.values()])
  return inputs.map(({ userId }) => written.get(userId))
}
