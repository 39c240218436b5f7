/**
 * Caches prepared client_credentials grants. An application requests the same token again and again,
 * and only the times and ids of the tokens and events differ.
 */
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import { type AccessGrant, grantClaims } from './access-token.js'
import { IssuedForm } from './issued-event.js'

type PreparedGrant = {
  readonly grant: AccessGrant
  /** The shared claims, from `grantClaims`. */
  readonly claims: string
  readonly issued: IssuedForm
}

/** Different `scope` values of one application. */
const SCOPES_MAX = 16

/**
 * Keyed by the client row that a grant was computed from. A changed application is read as a new row,
 * so its old grants are not found any more.
 */
export class PreparedGrantsCache {
  readonly #issuer: string
  readonly #known = new WeakMap<ClientRow, Map<string | null, PreparedGrant | 'used once'>>()

  constructor(issuer: string) {
    this.#issuer = issuer
  }

  /** @param scope the `scope` parameter as sent, or null. */
  get(row: ClientRow, scope: string | null): PreparedGrant | undefined {
    const known = this.#known.get(row)?.get(scope)
    return known === 'used once' ? undefined : known
  }

  /** Prepares a grant on its second use, since most are requested only once. */
  record(row: ClientRow, scope: string | null, grant: AccessGrant): void {
    let known = this.#known.get(row)
    if (known === undefined) {
      known = new Map()
      this.#known.set(row, known)
    }
    if (known.has(scope)) {
      const issued = new IssuedForm(grant, 'client_credentials')
      known.set(scope, { grant, claims: grantClaims(grant, this.#issuer), issued })
    } else if (known.size < SCOPES_MAX) known.set(scope, 'used once')
  }
}
