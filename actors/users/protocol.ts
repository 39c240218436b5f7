/** People of a tenant. A fixture user is an ordinary one on a reserved mail domain, for tests. */
import { address, type Ask } from '../../runtime/kernel/protocol.js'

export type UsersProtocol = {
  /**
   * Makes up a fixture user and hashes its password. Nothing is stored: the caller writes it in
   * the transaction of whatever the user belongs to.
   */
  prepareFixture: Ask<
    Record<never, never>,
    /** `busy`: the password workers are; try again. */
    FixturePrepared | { tag: 'busy' }
  >
}

export type FixturePrepared = {
  tag: 'prepared'
  /** What stands before the `@`; `fixtureEmail` makes the address. */
  mailbox: string
  displayName: string
  /** Shown once, never stored. */
  password: string
  /** PHC string. */
  passwordHash: string
}

/** Under a `.test` domain (RFC 6761 section 6.2): mail to it goes nowhere. */
export function fixtureEmail(mailbox: string, tenantSlug: string): string {
  return `${mailbox}@${tenantSlug}.test`
}

export const users = address<UsersProtocol>('users', ['prepareFixture'])
