/**
 * What an application is granted in its own name over and over: it asks for the same thing for as long
 * as it runs, and all but the times and ids of its tokens and events is the same each time.
 */
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import { type AccessGrant, grantClaims } from './access-token.js'
import { IssuedForm } from './issued-event.js'

export type StandingGrant = {
  readonly grant: AccessGrant
  /** From `grantClaims`. */
  readonly claims: string
  readonly issued: IssuedForm
}

/** Different scopes that one application asks for. */
const SCOPES_MAX = 16

/**
 * Kept with the row that the grant follows from, for as long as that is remembered: a change of the
 * application is another row.
 */
export class StandingGrants {
  readonly #issuer: string
  readonly #known = new WeakMap<ClientRow, Map<string | null, StandingGrant | 'given once'>>()

  constructor(issuer: string) {
    this.#issuer = issuer
  }

  /** @param scope the parameter as it came; null for none. */
  of(row: ClientRow, scope: string | null): StandingGrant | undefined {
    const known = this.#known.get(row)?.get(scope)
    return known === 'given once' ? undefined : known
  }

  /** Writes down what was given, once it is given a second time: most are asked for less often. */
  given(row: ClientRow, scope: string | null, grant: AccessGrant): void {
    let known = this.#known.get(row)
    if (known === undefined) {
      known = new Map()
      this.#known.set(row, known)
    }
    if (known.has(scope)) {
      const issued = new IssuedForm(grant, 'client_credentials')
      known.set(scope, { grant, claims: grantClaims(grant, this.#issuer), issued })
    } else if (known.size < SCOPES_MAX) known.set(scope, 'given once')
  }
}
